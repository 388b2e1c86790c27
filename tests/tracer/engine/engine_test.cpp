// Validation of model options and requests, with error messages; threads; and the phases of
// encoder and embedding models.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <string>

#include "tests/support/models/arch_model.h"
#include "tests/support/models/model_edit.h"
#include "tests/support/models/plain_llama.h"
#include "tests/support/models/traced_model.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/request/request_bounds.h"

namespace tt::test {
namespace {

using Kind = EngineError::Kind;
using Ids = std::vector<std::int32_t>;

// ---------------------------------------------------------------- validation

TEST(EngineLoad, RejectsInvalidModelsThatLlamaCppAccepts) {
  ensure_backends_loaded();
  ContextOptions threads, prompt_threads, context;
  threads.threads = prompt_threads.threads_batch = kMaxThreads + 1;
  context.context = kMaxContext + 1;
  for (const ContextOptions& options : {threads, prompt_threads, context}) {
    const auto engine = Engine::load({.path = two_layer_model("small")}, options, {});
    ASSERT_FALSE(engine.has_value());
    EXPECT_EQ(engine.error().kind, Kind::BadOption);
    EXPECT_TRUE(engine.error().message.contains("at most")) << engine.error().message;
  }
}

// The training context of small is 4096 tokens, of gpt-oss-like 8192, of this one 512.
TEST(EngineLoad, ContextAboveTheTrainedOneWarns) {
  ensure_backends_loaded();
  struct Case {
    const char* shape;
    std::uint32_t asked, context;
    bool warns;
  };
  constexpr std::uint32_t kDefault = ContextOptions::kDefaultContext;
  const Case cases[] = {{"small", kDefault, 4096, false}, {"gpt-oss-like", kDefault, 4096, false},
                        {"bert", kDefault, 512, false},   {"gpt-oss-like", 0, 8192, false},
                        {"small", 4096, 4096, false},     {"small", 4097, 4352, true},
                        {"small", 8192, 8192, true}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.shape);
    ContextOptions options;
    options.context = c.asked;
    options.threads = 1;
    const auto engine = Engine::load({.path = two_layer_model(c.shape)}, options, {});
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    const ModelFacts& facts = (*engine)->facts();
    EXPECT_EQ(facts.context, c.context);
    const bool warns = std::ranges::any_of(facts.warnings, [](const std::string& text) {
      return text.contains("the model was trained with 4096");
    });
    EXPECT_EQ(warns, c.warns);
  }
}

TEST(EngineAnswers, ReportsInvalidPrompts) {
  TracedModel traced(two_layer_model("small"));
  const std::string long_text(3000, 'x');
  struct Case {
    const char* name;
    Prompt prompt;
    Kind kind;
    const char* says;
  };
  const Case cases[] = {
      {"empty text", "", Kind::EmptyPrompt, "at least one character"},
      {"no tokens", Ids{}, Kind::EmptyPrompt, "at least one token"},
      {"no messages", std::vector<ChatMessage>{}, Kind::EmptyPrompt, "at least one message"},
      {"behind the vocabulary", Ids{1, 4096}, Kind::BadToken, "ids must be from 0 to 4095"},
      {"negative", Ids{-1}, Kind::BadToken, "Token -1"},
      {"longer than the context", Ids(513, 5), Kind::TooLong, "has 513 tokens; the maximum is 512"},
      {"long text", long_text, Kind::TooLong, "larger context"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    GenerationRequest request = greedy_tokens(1, 2);
    request.prompt = c.prompt;
    const auto checked = traced.engine().check(request);
    ASSERT_FALSE(checked.has_value());
    EXPECT_EQ(checked.error().kind, c.kind);
    EXPECT_TRUE(checked.error().message.contains(c.says)) << checked.error().message;
    const auto run = traced.run(request);
    EXPECT_EQ(run.result.reason, StopReason::Error);
    EXPECT_EQ(run.result.error, checked.error().message);
    EXPECT_EQ(run.info.state, SessionState::Failed);
    EXPECT_TRUE(check_session(run.file).value().empty());
  }
  EXPECT_EQ(traced.run(greedy_tokens(3, 2)).result.generated, 2U) << "the engine remains usable";
}

// The model without its tokenizer metadata.
std::filesystem::path without_vocabulary(const std::filesystem::path& model,
                                         const std::filesystem::path& out) {
  return with_metadata(model, out, [](gguf_context* bare, const gguf_context* whole) {
    gguf_set_kv(bare, whole);
    for (std::int64_t i = 0; i < gguf_get_n_kv(whole); ++i) {
      const char* key = gguf_get_key(whole, i);
      if (std::string_view(key).starts_with("tokenizer.")) gguf_remove_key(bare, key);
    }
    gguf_set_val_str(bare, "tokenizer.ggml.model", "no_vocab");
  });
}

TEST(EngineLoad, ReadsHyperparametersOfModelsArchitecture) {
  const TempFolder folder;
  const auto experts_of = [&](const std::filesystem::path& model) {
    const auto out = with_metadata(model, folder / "model.gguf",
                                   [](gguf_context* other, const gguf_context* whole) {
                                     gguf_set_val_u32(other, "elsewhere.expert_count", 77);
                                     gguf_set_val_u32(other, "elsewhere.expert_used_count", 7);
                                     gguf_set_kv(other, whole);
                                   });
    const ModelFacts facts = TracedModel(out).engine().facts();
    return std::pair(facts.n_experts, facts.n_experts_used);
  };
  EXPECT_EQ(experts_of(two_layer_model("small")), std::pair(0U, 0U));
  const ModelFacts routed = TracedModel(two_layer_model("gpt-oss-like")).engine().facts();
  EXPECT_GT(routed.n_experts, routed.n_experts_used);
  EXPECT_EQ(experts_of(two_layer_model("gpt-oss-like")),
            std::pair(routed.n_experts, routed.n_experts_used));
}

// Deeper nesting would overflow the stack and end the process.
TEST(EngineAnswers, RejectsTooDeepGrammarsAndPatterns) {
  TracedModel traced(two_layer_model("small"));
  const std::string text(kMaxGrammarBytes, 'x'), open(500, '('), close(500, ')');
  struct Case {
    std::string grammar, pattern;
    const char* says;  // empty: it is accepted
  };
  const Case cases[] = {
      {"root ::= " + std::string(60'000, '('), "", "crashed the process that ran it"},
      {"root ::= #\r" + std::string(60'000, '('), "", "crashed the process that ran it"},
      {"root ::= " + open + "\"x\"" + close, "", ""},
      {"root ::= \"" + open + "(\\\"(\" [(" + open + "] # ((" + open + "\n", "", ""},
      {"root ::= \"" + text + "\"", "", "too large"},
      {"", std::string(100'000, '('), "the maximum is 1000"},
      {"", std::string(1000, '('), "not a valid regular expression"},
      {"", std::string(400, '(') + "a" + std::string(400, ')'), ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE((c.grammar + c.pattern).substr(0, 40));
    GenerationRequest request = text_request("Hello", 1);
    request.sampling.grammar = c.grammar;
    request.stats_pattern = c.pattern;
    const auto checked = traced.engine().check(request);
    EXPECT_EQ(checked.has_value(), *c.says == '\0') << (checked ? "" : checked.error().message);
    if (!checked) {
      EXPECT_TRUE(checked.error().message.contains(c.says)) << checked.error().message;
    }
  }
}

TEST(EngineAnswers, ModelWithoutVocabularyAcceptsTokenIdsOnly) {
  const TempFolder folder;
  TracedModel traced(without_vocabulary(two_layer_model("small"), folder / "no-vocabulary.gguf"));
  EXPECT_FALSE(traced.engine().facts().has_vocabulary);
  GenerationRequest request = text_request("Hello", 2);
  const auto checked = traced.engine().check(request);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().kind, Kind::NoVocabulary);
  EXPECT_TRUE(checked.error().message.contains("Send token ids")) << checked.error().message;

  request = greedy_tokens(3, 2);
  request.sampling.grammar = "root ::= \"yes\"";
  const auto grammar = traced.engine().check(request);
  ASSERT_FALSE(grammar.has_value());
  EXPECT_EQ(grammar.error().kind, Kind::BadGrammar);

  request.prompt = std::vector<ChatMessage>{{"user", "Hello"}};
  EXPECT_EQ(traced.engine().check(request).error().kind, Kind::NoVocabulary);
  const auto run = traced.run(greedy_tokens(3, 2));
  EXPECT_EQ(run.result.generated, 2U);
  EXPECT_EQ(run.result.text, "");
}

TEST(EngineAnswers, RejectsInvalidOptions) {
  ensure_backends_loaded();
  const auto rejected = [](const ModelOptions& model, const ContextOptions& context) {
    auto engine = Engine::load(model, context, {});
    EXPECT_FALSE(engine.has_value());
    return engine ? EngineError{} : engine.error();
  };
  ContextOptions context = TracedModel::small_context();
  EXPECT_EQ(rejected({.path = "/nowhere/model.gguf"}, context).kind, Kind::NotFound);

  context.cache_type_k = "q9_9";
  const EngineError type = rejected({.path = two_layer_model("small")}, context);
  EXPECT_EQ(type.kind, Kind::BadOption);
  EXPECT_TRUE(type.message.contains("q9_9") && type.message.contains("q8_0")) << type.message;

  context = TracedModel::small_context();
  context.cache_type_v = "q8_0";
  context.flash_attention = FlashAttention::Off;
  EXPECT_TRUE(
      rejected({.path = two_layer_model("small")}, context).message.contains("flash attention"));

  auto cancelled = Engine::load({.path = two_layer_model("small")}, TracedModel::small_context(),
                                [](float) { return false; });
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().kind, Kind::Cancelled);
}

TEST(EngineAnswers, LoadingReportsProgress) {
  ensure_backends_loaded();
  std::vector<float> progress;
  auto engine =
      Engine::load({.path = two_layer_model("small")}, TracedModel::small_context(), [&](float p) {
        progress.push_back(p);
        return true;
      });
  ASSERT_TRUE(engine.has_value());
  EXPECT_GT(progress.size(), 2U);
  EXPECT_TRUE(std::ranges::is_sorted(progress));
  EXPECT_EQ(progress.back(), 1.0F);
}

// ---------------------------------------------------------------- end of the context

TEST(EngineContext, StopsAtFullContextAndNextRequestWorks) {
  ContextOptions context = TracedModel::small_context();
  context.context = 256;
  TracedModel traced(two_layer_model("small"), context);
  const auto run = traced.run(greedy_tokens(250, 100));
  EXPECT_EQ(run.result.reason, StopReason::ContextFull);
  EXPECT_EQ(run.result.error, "");
  // Six more tokens fit. The last sampled token needs no cell.
  EXPECT_EQ(run.result.generated, 7U);
  EXPECT_EQ(run.info.state, SessionState::Done);
  EXPECT_EQ(run.steps().size(), 4U + 6U);

  const auto whole = traced.run(greedy_tokens(256, 5));
  EXPECT_EQ(whole.result.reason, StopReason::ContextFull);
  EXPECT_EQ(whole.result.generated, 1U);

  const auto next = traced.run(greedy_tokens(5, 5));
  EXPECT_EQ(next.result.reason, StopReason::Length);
  TracedModel fresh(two_layer_model("small"), context);
  EXPECT_EQ(next.captured.tokens, fresh.run(greedy_tokens(5, 5)).captured.tokens);
}

// ggml aborts at a position beyond the trained ones, however large the context.
TEST(EngineContext, StopsAtLastTrainedPosition) {
  for (const char* model : {"gpt2-dense", "mpt-dense", "starcoder-dense"}) {
    SCOPED_TRACE(model);
    ContextOptions context = TracedModel::small_context();
    context.context = 1024;
    TracedModel traced(arch_model(model), context);
    EXPECT_EQ(traced.engine().facts().context, 256U);
    const auto run = traced.run(greedy_tokens(250, 100));
    EXPECT_EQ(run.result.reason, StopReason::ContextFull);
    EXPECT_EQ(run.result.generated, 7U);
    const auto rejected = traced.engine().tokens_of(Ids(257, 5));
    ASSERT_FALSE(rejected.has_value());
    EXPECT_EQ(rejected.error().message,
              "The prompt has 257 tokens; the maximum is 256. Shorten it: this is the limit of "
              "the model.");
  }
}

// ---------------------------------------------------------------- threads

// The library itself reports how many threads a step used.
TEST(EngineThreads, UseConfiguredCountsForPromptAndDecode) {
  struct Case {
    std::int32_t threads, batch;
    std::uint32_t of_prompt, of_decode;
  };
  for (const Case& c : {Case{1, 3, 3, 1}, Case{2, 0, 2, 2}, Case{2, 1, 1, 2}}) {
    SCOPED_TRACE(std::format("-t {} -tb {}", c.threads, c.batch));
    ContextOptions context = TracedModel::small_context();
    context.threads = c.threads;
    context.threads_batch = c.batch;
    TracedModel traced(generated_model({.shape = "small", .dims = {.layers = 1}}), context);
    const auto steps = traced.run(greedy_tokens(70, 3)).steps();
    ASSERT_EQ(steps.size(), 4U);  // 64, 6, 1, 1
    for (const Step& step : steps)
      EXPECT_EQ(step.threads, step.n_tokens > 1 ? c.of_prompt : c.of_decode) << step.id.v;
  }
}

// ---------------------------------------------------------------- other kinds of model

TEST(EnginePhases, EncoderRunsBeforeDecoder) {
  TracedModel traced(two_layer_model("t5"));
  ASSERT_TRUE(traced.engine().facts().has_encoder);
  const auto run = traced.run(text_request("the old sea", 4));
  ASSERT_EQ(run.result.reason, StopReason::Length) << run.result.error;
  const auto steps = run.steps();
  ASSERT_EQ(steps.size(), 5U);
  EXPECT_EQ(steps[0].phase, Phase::Encode);
  EXPECT_EQ(steps[0].n_tokens, run.result.prompt_tokens);
  EXPECT_EQ(steps[0].first_token, 0U);
  EXPECT_EQ(steps[1].phase, Phase::Prompt);  // the decoder's start token
  EXPECT_EQ(steps[1].n_tokens, 1U);
  EXPECT_EQ(steps[1].first_token, run.result.prompt_tokens);
  for (std::size_t i = 2; i < 5; ++i) {
    EXPECT_EQ(steps[i].phase, Phase::Generate);
    EXPECT_EQ(steps[i].first_token, run.result.prompt_tokens + i - 1);
  }
  // Another text gives another output: the decoder depends on the encoded text.
  const auto other = traced.run(text_request("quite something else", 4));
  const auto again = traced.run(text_request("the old sea", 4));
  EXPECT_NE(other.captured.tokens.back(), run.captured.tokens.back());
  EXPECT_EQ(again.captured.tokens, run.captured.tokens);
}

TEST(EnginePhases, EmbeddingModelRunsInOneStep) {
  TracedModel traced(two_layer_model("bert"));
  ASSERT_TRUE(traced.engine().facts().embedding_only);
  GenerationRequest ruled = text_request("the old sea", 4);
  ruled.sampling.grammar = "root ::= \"yes\"";
  const auto rejected = traced.engine().check(ruled);
  ASSERT_FALSE(rejected.has_value());
  EXPECT_TRUE(rejected.error().message.contains("generates no text")) << rejected.error().message;
  const auto run = traced.run(text_request("the old sea and the wind", 4));
  ASSERT_EQ(run.result.reason, StopReason::Embedded) << run.result.error;
  EXPECT_EQ(run.result.generated, 0U);
  ASSERT_EQ(run.steps().size(), 1U);
  EXPECT_EQ(run.steps()[0].phase, Phase::Embed);
  ASSERT_EQ(run.result.embedding.size(), traced.engine().facts().n_embd);
  double length = 0;
  for (const float value : run.result.embedding) {
    ASSERT_TRUE(std::isfinite(value));
    length += double{value} * double{value};
  }
  EXPECT_GT(length, 0.0);
  ContextOptions options = TracedModel::small_context();
  options.batch = options.ubatch = 512;
  PlainLlama plain(two_layer_model("bert"), options, {}, true);
  const auto tokens = traced.engine().tokens_of("the old sea and the wind");
  ASSERT_TRUE(tokens.has_value());
  EXPECT_EQ(run.result.embedding, plain.embedding(*tokens));
}

// The maximum is the number of trained positions, whatever the context size.
TEST(EnginePhases, EmbeddingModelReportsMaximumTextLength) {
  ContextOptions options = TracedModel::small_context();
  options.context = 4096;
  TracedModel traced(two_layer_model("bert"), options);
  const auto rejected = traced.engine().tokens_of(Ids(513, 5));
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().message,
            "The prompt has 513 tokens; the maximum is 512. Shorten it: this is the limit of the "
            "model.");
  options.context = 64;
  TracedModel shorter(two_layer_model("bert"), options);
  const auto fits_more = shorter.engine().tokens_of(Ids(65, 5));
  ASSERT_FALSE(fits_more.has_value());
  EXPECT_TRUE(fits_more.error().message.contains("larger context (-c)"));
}

// A reranker returns one number per class instead of an embedding.
TEST(EnginePhases, RerankerReturnsRank) {
  const TempFolder folder;
  TracedModel traced(with_changes(two_layer_model("bert"), folder / "rank.gguf", [](auto* file) {
    gguf_set_val_u32(file, "bert.pooling_type", LLAMA_POOLING_TYPE_RANK);
  }));
  const auto run = traced.run(text_request("the old sea and the wind", 4));
  ASSERT_EQ(run.result.reason, StopReason::Embedded) << run.result.error;
  ASSERT_EQ(run.result.embedding.size(), 1U);
  EXPECT_TRUE(std::isfinite(run.result.embedding[0]));
}

// An embedding cannot be continued, so nothing is kept for prefix reuse.
TEST(EnginePhases, EmbeddingModelKeepsNoRequestState) {
  constexpr int kRequests = 100;
  constexpr std::size_t kTokens = 200;
  TracedModel traced(two_layer_model("bert"));
  GenerationRequest request = greedy_tokens(kTokens, 1);
  request.level = Level::Off;
  const auto held_after = [&](int requests) {
    for (int i = 0; i < requests; ++i) {
      EXPECT_EQ(traced.run(request).result.reason, StopReason::Embedded);
    }
    const struct mallinfo2 heap = mallinfo2();
    return static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
  };
  const std::int64_t before = held_after(3);
  EXPECT_LT(held_after(kRequests) - before, kRequests * kTokens * sizeof(std::int32_t) / 2);
}

}  // namespace
}  // namespace tt::test
