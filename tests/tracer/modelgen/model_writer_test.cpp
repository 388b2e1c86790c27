#include "tracer/modelgen/model_writer.h"

#include <gguf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/tracer/modelgen/loaded_model.h"
#include "tracer/modelgen/model_plan.h"

namespace tt::modelgen {
namespace {

namespace fs = std::filesystem;

class ModelWriter : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::format("modelgen-{}-{}", test->name(), getpid());
    std::ranges::replace(name, '/', '-');
    folder_ = fs::path(::testing::TempDir()) / name;
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }

  fs::path folder_;
};

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool all_finite(const float* values, int count) {
  bool moved = false;
  for (int i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) {
      return false;
    }
    moved = moved || values[i] != values[0];
  }
  return moved;  // otherwise the weights have no effect
}

// The rows of a matrix of a file, as bytes. Empty: the file has no such tensor.
std::vector<std::string> rows_of(const fs::path& path, const char* name) {
  ggml_context* described = nullptr;
  gguf_context* header = gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = &described});
  std::vector<std::string> rows;
  if (const ggml_tensor* tensor = ggml_get_tensor(described, name); tensor != nullptr) {
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(
        gguf_get_data_offset(header) +
        gguf_get_tensor_offset(header, gguf_find_tensor(header, name))));
    rows.resize(static_cast<std::size_t>(tensor->ne[1]), std::string(tensor->nb[1], '\0'));
    for (std::string& row : rows) file.read(row.data(), static_cast<std::streamsize>(row.size()));
  }
  gguf_free(header);
  ggml_free(described);
  return rows;
}

std::size_t equal_rows(const fs::path& path, const char* name) {
  std::vector<std::string> rows = rows_of(path, name);
  const std::size_t all = rows.size();
  std::ranges::sort(rows);
  return all - static_cast<std::size_t>(std::ranges::unique(rows).begin() - rows.begin());
}

// How many tokens have the highest logit.
std::ptrdiff_t most_likely_tokens(const LoadedModel& loaded) {
  const std::span logits(llama_get_logits_ith(loaded.context.get(), -1),
                         static_cast<std::size_t>(llama_vocab_n_tokens(loaded.vocab())));
  return std::ranges::count(logits, std::ranges::max(logits));
}

class EveryShape : public ModelWriter, public ::testing::WithParamInterface<NamedShape> {};

TEST_P(EveryShape, LoadsTokenizesAndRuns) {
  const NamedShape& shape = GetParam();
  ModelSpec spec{.shape = std::string(shape.name)};
  if (shape.name == "tinyllama-1.1b") {
    spec.dims.layers = 2;
  }
  const auto report = write_model(spec, folder_ / "model.gguf");
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->files.size(), 1U);
  EXPECT_EQ(report->bytes, fs::file_size(report->files[0]));
  EXPECT_EQ(files(), 1U);  // no partial file remains
  // Tokens with equal rows have equal logits, and programs choose different ones of them.
  for (const char* matrix : {"token_embd.weight", "output.weight"})
    EXPECT_EQ(equal_rows(report->files[0], matrix), 0U) << matrix;

  const LoadedModel loaded = load_model(report->files[0], !shape.generates);
  ASSERT_TRUE(loaded.context);
  const std::string text = "hello there, a page fault at 4096!";
  std::vector<llama_token> tokens = tokenize(loaded.vocab(), text);
  ASSERT_GT(tokens.size(), 3U);
  ASSERT_LT(tokens.size(), text.size());
  std::string back = detokenize(loaded.vocab(), tokens);
  if (shape.architecture == "bert") {
    std::erase(back, ' ');  // WordPiece does not preserve spaces
    EXPECT_EQ(back, "hellothere,apagefaultat4096!");
  } else {
    EXPECT_EQ(back.substr(back.starts_with(' ') ? 1 : 0), text);
  }

  tokens = tokenize(loaded.vocab(), text, true);
  llama_batch batch = llama_batch_get_one(tokens.data(), static_cast<int>(tokens.size()));
  llama_token next = 0;
  if (llama_model_has_encoder(loaded.model.get())) {
    ASSERT_EQ(llama_encode(loaded.context.get(), batch), 0);
    next = llama_model_decoder_start_token(loaded.model.get());
  } else {
    ASSERT_EQ(llama_decode(loaded.context.get(), batch), 0);
    if (!shape.generates) {
      const float* embedding = llama_get_embeddings_seq(loaded.context.get(), 0);
      ASSERT_NE(embedding, nullptr);
      EXPECT_TRUE(all_finite(embedding, llama_model_n_embd(loaded.model.get())));
      return;
    }
    next = greedy(loaded);
  }
  for (int step = 0; step < 3; ++step) {
    ASSERT_EQ(llama_decode(loaded.context.get(), llama_batch_get_one(&next, 1)), 0);
    ASSERT_TRUE(all_finite(llama_get_logits_ith(loaded.context.get(), -1),
                           llama_vocab_n_tokens(loaded.vocab())));
    EXPECT_EQ(most_likely_tokens(loaded), 1);
    next = greedy(loaded);
  }
}

INSTANTIATE_TEST_SUITE_P(, EveryShape,
                         ::testing::ValuesIn(named_shapes().begin(), named_shapes().end()),
                         [](const auto& test) {
                           std::string name(test.param.name);
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

// More tokens than chunks in a pool, with rows of one chunk and of two.
TEST_F(ModelWriter, NoTwoRowsOfALargeVocabularyAreEqual) {
  const auto write = [&](const ModelSpec& spec) {
    ASSERT_TRUE(write_model(spec, folder_ / "model.gguf"));
    EXPECT_EQ(rows_of(folder_ / "model.gguf", "token_embd.weight").size(),
              static_cast<std::size_t>(*spec.dims.vocab));
    for (const char* matrix : {"token_embd.weight", "output.weight"})
      EXPECT_EQ(equal_rows(folder_ / "model.gguf", matrix), 0U) << matrix;
  };
  for (const char* quant : {"q4_k_m", "q8_0", "q2_k"}) {
    SCOPED_TRACE(quant);
    write({.shape = "small", .dims = {.layers = 1, .vocab = 5000}, .quant = quant});
  }
  write({.shape = "small", .dims = {.layers = 1, .embd = 512, .vocab = 32'000}});
}

TEST_F(ModelWriter, BytesAndEmojiSurviveTheRoundTrip) {
  for (const char* shape : {"small", "rwkv"}) {
    ASSERT_TRUE(write_model({.shape = shape}, folder_ / "model.gguf"));
    const LoadedModel loaded = load_model(folder_ / "model.gguf");
    ASSERT_TRUE(loaded.context);
    const std::string text = "Größe: 3 \xF0\x9F\x90\x99\n\ttab";
    std::string back = detokenize(loaded.vocab(), tokenize(loaded.vocab(), text));
    EXPECT_EQ(back.substr(back.starts_with(' ') ? 1 : 0), text) << shape;
  }
}

TEST_F(ModelWriter, GenerativeModelsHaveChatTemplate) {
  ASSERT_TRUE(write_model({.shape = "small"}, folder_ / "model.gguf"));
  const LoadedModel loaded = load_model(folder_ / "model.gguf");
  ASSERT_TRUE(loaded.model);
  const char* chat = llama_model_chat_template(loaded.model.get(), nullptr);
  ASSERT_NE(chat, nullptr);
  EXPECT_NE(std::string(chat).find("<|im_start|>"), std::string::npos);
  const auto end = tokenize(loaded.vocab(), "<|im_end|>", true);
  ASSERT_EQ(end.size(), 2U);  // BOS and the one token
  EXPECT_TRUE(llama_vocab_is_eog(loaded.vocab(), end[1]));
}

TEST_F(ModelWriter, SameSeedGivesSameBytes) {
  const ModelSpec one{.shape = "moe", .dims = {.layers = 2}, .seed = 7};
  ModelSpec other = one;
  other.seed = 8;
  ASSERT_TRUE(write_model(one, folder_ / "a.gguf"));
  ASSERT_TRUE(write_model(one, folder_ / "b.gguf"));
  ASSERT_TRUE(write_model(other, folder_ / "c.gguf"));
  EXPECT_TRUE(bytes_of(folder_ / "a.gguf") == bytes_of(folder_ / "b.gguf"));
  EXPECT_FALSE(bytes_of(folder_ / "a.gguf") == bytes_of(folder_ / "c.gguf"));
}

TEST_F(ModelWriter, SplitFilesAreOneModel) {
  ModelSpec spec{.shape = "small", .dims = {.layers = 3}};
  ASSERT_TRUE(write_model(spec, folder_ / "whole.gguf"));
  spec.splits = 3;
  const auto report = write_model(spec, folder_ / "model.gguf");
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->files.size(), 3U);
  EXPECT_EQ(report->files[0].filename(), "model-00001-of-00003.gguf");
  EXPECT_EQ(report->files[2].filename(), "model-00003-of-00003.gguf");
  EXPECT_EQ(files(), 4U);

  // The same logits as from the single file.
  const LoadedModel whole = load_model(folder_ / "whole.gguf");
  const LoadedModel split = load_model(report->files[0]);
  ASSERT_TRUE(whole.context);
  ASSERT_TRUE(split.context);
  auto tokens = tokenize(whole.vocab(), "one two three", true);
  for (const LoadedModel* loaded : {&whole, &split}) {
    ASSERT_EQ(llama_decode(loaded->context.get(),
                           llama_batch_get_one(tokens.data(), static_cast<int>(tokens.size()))),
              0);
  }
  const float* a = llama_get_logits_ith(whole.context.get(), -1);
  const float* b = llama_get_logits_ith(split.context.get(), -1);
  EXPECT_TRUE(std::equal(a, a + llama_vocab_n_tokens(whole.vocab()), b));
}

TEST_F(ModelWriter, TiedModelRuns) {
  ASSERT_TRUE(
      write_model({.shape = "small", .dims = {.layers = 2}, .tied = true}, folder_ / "model.gguf"));
  const LoadedModel loaded = load_model(folder_ / "model.gguf");
  ASSERT_TRUE(loaded.context);
  llama_token token = 300;
  ASSERT_EQ(llama_decode(loaded.context.get(), llama_batch_get_one(&token, 1)), 0);
  EXPECT_TRUE(all_finite(llama_get_logits_ith(loaded.context.get(), -1),
                         llama_vocab_n_tokens(loaded.vocab())));
}

TEST_F(ModelWriter, EveryTypeCanBeWrittenAndRead) {
  for (const std::string& quant : quant_mixes()) {
    const auto report = write_model(
        {.shape = "moe", .dims = {.layers = 1, .vocab = 512}, .quant = quant}, folder_ / "m.gguf");
    ASSERT_TRUE(report) << quant << ": " << report.error().message;
    const LoadedModel loaded = load_model(folder_ / "m.gguf");
    ASSERT_TRUE(loaded.context) << quant;
    llama_token token = 300;
    ASSERT_EQ(llama_decode(loaded.context.get(), llama_batch_get_one(&token, 1)), 0) << quant;
    EXPECT_TRUE(all_finite(llama_get_logits_ith(loaded.context.get(), -1), 512)) << quant;
  }
}

// Compared with llama.cpp's own quantizer, for fewer than eleven layers, where both list the
// layers in the same order.
TEST_F(ModelWriter, MixMatchesLlamaQuantize) {
  const auto types = [](const fs::path& path) {
    std::map<std::string, std::string> result;
    const GgufContext gguf(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
    for (std::int64_t i = 0; gguf && i < gguf_get_n_tensors(gguf.get()); ++i) {
      result[gguf_get_tensor_name(gguf.get(), i)] =
          ggml_type_name(gguf_get_tensor_type(gguf.get(), i));
    }
    return result;
  };
  const DimOverrides little{.layers = 4, .ff = 256, .vocab = 512};
  DimOverrides few_experts = little;
  few_experts.experts = 4;
  for (ModelSpec spec :
       {ModelSpec{.shape = "small", .dims = little}, ModelSpec{.shape = "moe", .dims = little},
        ModelSpec{.shape = "deepseek-like", .dims = few_experts},
        ModelSpec{.shape = "t5", .dims = little}}) {
    spec.quant = "f32";
    ASSERT_TRUE(write_model(spec, folder_ / "f32.gguf"));
    spec.quant = "q4_k_m";
    ASSERT_TRUE(write_model(spec, folder_ / "ours.gguf"));
    const std::string command =
        std::format("llama-quantize '{}' '{}' Q4_K_M 1 >/dev/null 2>&1",
                    (folder_ / "f32.gguf").string(), (folder_ / "theirs.gguf").string());
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    EXPECT_EQ(types(folder_ / "ours.gguf"), types(folder_ / "theirs.gguf")) << spec.shape;
  }
}

TEST_F(ModelWriter, ProgressIncreasesToEnd) {
  std::uint64_t last = 0;
  std::uint64_t total = 0;
  ASSERT_TRUE(write_model({.shape = "small"}, folder_ / "model.gguf",
                          [&](std::uint64_t done, std::uint64_t all) {
                            EXPECT_GT(done, last);
                            last = done;
                            total = all;
                            return true;
                          }));
  EXPECT_EQ(last, total);
}

TEST_F(ModelWriter, CancelLeavesNoFile) {
  const auto report =
      write_model({.shape = "small", .splits = 2}, folder_ / "model.gguf",
                  [](std::uint64_t done, std::uint64_t total) { return done < total * 3 / 4; });
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ModelError::Kind::Cancelled);
  EXPECT_EQ(files(), 0U);
}

TEST_F(ModelWriter, CancelKeepsExistingFile) {
  ASSERT_TRUE(write_model({.shape = "mamba"}, folder_ / "model.gguf"));
  const std::string before = bytes_of(folder_ / "model.gguf");
  ASSERT_FALSE(write_model({.shape = "mamba", .seed = 2}, folder_ / "model.gguf",
                           [](std::uint64_t, std::uint64_t) { return false; }));
  EXPECT_TRUE(bytes_of(folder_ / "model.gguf") == before);
}

TEST_F(ModelWriter, MissingFolderAndFullDiskAreErrors) {
  const auto nowhere = write_model({.shape = "mamba"}, folder_ / "no" / "model.gguf");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().kind, ModelError::Kind::Io);
  EXPECT_NE(nowhere.error().message.find("model.gguf"), std::string::npos);

  // A partial file that cannot grow: replaced by /dev/full.
  fs::create_symlink("/dev/full", folder_ / "model.gguf.partial");
  const auto full = write_model({.shape = "mamba"}, folder_ / "model.gguf");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind, ModelError::Kind::Io);
  EXPECT_NE(full.error().message.find("No space left"), std::string::npos);
  EXPECT_EQ(files(), 0U);
}

}  // namespace
}  // namespace tt::modelgen
