#include "tests/support/models/arch_model.h"
#include "tests/support/test_paths.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <format>
#include <vector>

#include "tests/support/models/model_edit.h"
#include "tests/support/temp_folder.h"

namespace tt::test {

std::filesystem::path arch_model(const std::string& file) {
  static const TempFolder folder;
  const std::filesystem::path path = folder.path() / (file + ".gguf");
  if (std::filesystem::exists(path)) return path;
  const std::string arch = file.substr(0, file.rfind('-'));
  const std::string out = folder.path().string();
  const std::string command =
      std::format("'{}' -a '^{}$' -o '{}' > '{}/log' 2>&1", kTestPaths.llama_archs, arch, out, out);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  EXPECT_TRUE(std::filesystem::exists(path)) << command;
  return path;
}

bool is_arch_model(const std::string& name) {
  return name.ends_with("-dense") || name.ends_with("-moe");
}

std::filesystem::path arch_model_with_letters(const std::string& file) {
  static const TempFolder folder;
  const std::filesystem::path path = folder.path() / (file + ".gguf");
  if (std::filesystem::exists(path)) return path;
  const std::filesystem::path model = arch_model(file);
  ggml_context* tensors = nullptr;
  const GgufContext header(gguf_init_from_file(model.c_str(), {.no_alloc = true, .ctx = &tensors}));
  const GgmlContext owner(tensors);
  const std::int64_t rows = ggml_get_tensor(tensors, "token_embd.weight")->ne[1];
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "\u2581"};
  for (char letter = 'a'; letter <= 'z'; ++letter) tokens.emplace_back(1, letter);
  EXPECT_GE(rows, std::ssize(tokens));
  while (std::ssize(tokens) < rows) tokens.push_back(std::format("<{}>", tokens.size()));
  std::vector<const char*> texts;
  for (const std::string& token : tokens) texts.push_back(token.c_str());
  enum Type : std::int32_t { Normal = 1, Unknown, Control };
  std::vector<std::int32_t> types(tokens.size(), Normal);
  types[0] = Unknown;
  types[1] = types[2] = Control;
  const std::vector<float> scores(tokens.size());
  return with_changes(model, path, [&](gguf_context* gguf) {
    gguf_set_val_str(gguf, "tokenizer.ggml.model", "llama");
    gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", texts.data(), texts.size());
    gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(),
                      types.size());
    gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(),
                      scores.size());
    gguf_set_val_u32(gguf, "tokenizer.ggml.unknown_token_id", 0);
    gguf_set_val_u32(gguf, "tokenizer.ggml.bos_token_id", 1);
    gguf_set_val_u32(gguf, "tokenizer.ggml.eos_token_id", 2);
  });
}

}  // namespace tt::test
