// The bundled model: it is small and answers with sentences of its corpus.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/test_paths.h"
#include "tests/tracer/modelgen/loaded_model.h"

namespace tt::modelgen {
namespace {

// The greedy answer to a question, up to the end of the turn or 80 tokens.
std::string greedy_answer(const LoadedModel& loaded, const std::string& question) {
  llama_memory_clear(llama_get_memory(loaded.context.get()), true);
  auto tokens = tokenize(loaded.vocab(), "<user>" + question + "<reply>", true);
  std::vector<llama_token> reply;
  llama_batch batch = llama_batch_get_one(tokens.data(), static_cast<int>(tokens.size()));
  llama_token next = 0;
  while (reply.size() < 80 && llama_decode(loaded.context.get(), batch) == 0) {
    next = greedy(loaded);
    if (llama_vocab_is_eog(loaded.vocab(), next)) {
      break;
    }
    reply.push_back(next);
    batch = llama_batch_get_one(&next, 1);
  }
  std::string text = detokenize(loaded.vocab(), reply);
  return text.starts_with(' ') ? text.substr(1) : text;
}

TEST(BundledModel, IsAtMostTwoMegabytes) {
  EXPECT_LE(std::filesystem::file_size(kTestPaths.bundled_model), 2'000'000U);
}

TEST(BundledModel, AnswersInReadableText) {
  const LoadedModel loaded = load_model(kTestPaths.bundled_model);
  ASSERT_TRUE(loaded.context);
  EXPECT_GE(llama_model_n_ctx_train(loaded.model.get()), 512);
  EXPECT_NE(llama_model_chat_template(loaded.model.get(), nullptr), nullptr);

  struct Case {
    const char* question;
    const char* contains;
  };
  const Case cases[] = {
      {"What is a cache?", "A cache is a small and fast memory"},
      {"Explain attention.", "Attention lets a model look back"},
      {"What is a page fault?", "touches a page that is not in memory"},
      {"Who are you?", "I am a very small language model"},
      {"Tell me a story about a fox.", "Once upon a time a fox"},
      {"Hello!", "Hello! I am a very small language model"},
  };
  for (const Case& c : cases) {
    const std::string text = greedy_answer(loaded, c.question);
    EXPECT_NE(text.find(c.contains), std::string::npos) << c.question << " -> " << text;
    EXPECT_EQ(text.find('<'), std::string::npos) << text;  // no markers, no bytes
  }
}

}  // namespace
}  // namespace tt::modelgen
