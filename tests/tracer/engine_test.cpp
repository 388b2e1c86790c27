// What a request may ask for, and what it is told: prompts, limits, sampling, text.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <string>

#include "tests/tracer/plain_llama.h"
#include "tests/tracer/traced_model.h"
#include "tracer/llama_handles.h"
#include "tracer/request_bounds.h"
#include "tracer/text_stream.h"

namespace tt::test {
namespace {

using Kind = EngineError::Kind;
using Ids = std::vector<std::int32_t>;

std::filesystem::path shape(const char* name) {
  modelgen::ModelSpec spec;
  spec.shape = name;
  return generated_model(spec);
}

GenerationRequest text_request(std::string prompt, std::uint32_t tokens) {
  GenerationRequest request = greedy_tokens(1, tokens);
  request.prompt = std::move(prompt);
  return request;
}

// ---------------------------------------------------------------- what is refused

TEST(EngineLoad, RefusesWhatLlamaCppDoesNotCheck) {
  need_backends();
  ContextOptions threads, prompt_threads, context;
  threads.threads = prompt_threads.threads_batch = kMostThreads + 1;
  context.context = kMostContext + 1;
  for (const ContextOptions& options : {threads, prompt_threads, context}) {
    const auto engine = Engine::load({.path = shape("small")}, options, {});
    ASSERT_FALSE(engine.has_value());
    EXPECT_EQ(engine.error().kind, Kind::BadOption);
    EXPECT_TRUE(engine.error().message.contains("at most")) << engine.error().message;
  }
}

TEST(EngineAnswers, SaysWhatIsWrongWithAPrompt) {
  TracedModel traced(shape("small"));
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
      {"behind the vocabulary", Ids{1, 4096}, Kind::BadToken, "ids go from 0 to 4095"},
      {"negative", Ids{-1}, Kind::BadToken, "Token -1"},
      {"longer than the context", Ids(513, 5), Kind::TooLong, "has 513 tokens, 512 fit"},
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
  EXPECT_EQ(traced.run(greedy_tokens(3, 2)).result.generated, 2U) << "and works on";
}

// The same weights, and what `say` takes over into the new metadata from the old.
template <class Say>
std::filesystem::path with_metadata(const std::filesystem::path& model,
                                    const std::filesystem::path& out, Say say) {
  ggml_context* tensors = nullptr;
  const GgufContext whole(gguf_init_from_file(model.c_str(), {.no_alloc = false, .ctx = &tensors}));
  const GgmlContext owner(tensors);
  const GgufContext other(gguf_init_empty());
  say(other.get(), whole.get());
  for (std::int64_t i = 0; i < gguf_get_n_tensors(whole.get()); ++i) {
    gguf_add_tensor(other.get(), ggml_get_tensor(tensors, gguf_get_tensor_name(whole.get(), i)));
  }
  EXPECT_TRUE(gguf_write_to_file(other.get(), out.c_str(), false));
  return out;
}

// Nothing is said about text.
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

TEST(EngineLoad, TakesNumbersOfTheModelsOwnArchitecture) {
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
  EXPECT_EQ(experts_of(shape("small")), std::pair(0U, 0U));
  const ModelFacts routed = TracedModel(shape("gpt-oss-like")).engine().facts();
  EXPECT_GT(routed.n_experts, routed.n_experts_used);
  EXPECT_EQ(experts_of(shape("gpt-oss-like")), std::pair(routed.n_experts, routed.n_experts_used));
}

// Deeper, they end the process.
TEST(EngineAnswers, RefusesGrammarsAndPatternsThatTheStackHasNoRoomFor) {
  TracedModel traced(shape("small"));
  const std::string text(kMostGrammarBytes, 'x'), open(kDeepestGrammar, '('),
      close(kDeepestGrammar, ')');
  struct Case {
    std::string grammar, pattern;
    const char* says;  // empty: it is taken
  };
  const Case cases[] = {
      {"root ::= " + std::string(60'000, '('), "", "too large"},
      {"root ::= (" + open + "\"x\"" + close + ")", "", "too large"},
      {"root ::= " + open + "\"x\"" + close, "", ""},
      {"root ::= \"" + open + "(\\\"(\" [(" + open + "] # ((" + open + "\n", "", ""},
      {"root ::= \"" + text + "\"", "", "too large"},
      {"", std::string(100'000, '('), "1000 are allowed"},
      {"", std::string(1000, '('), "not a regular expression"},
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

TEST(EngineAnswers, AModelWithoutVocabularyTakesIdsOnly) {
  const TempFolder folder;
  TracedModel traced(without_vocabulary(shape("small"), folder / "no-vocabulary.gguf"));
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

TEST(EngineAnswers, OptionsThatCannotBe) {
  need_backends();
  const auto refused = [](const ModelOptions& model, const ContextOptions& context) {
    auto engine = Engine::load(model, context, {});
    EXPECT_FALSE(engine.has_value());
    return engine ? EngineError{} : engine.error();
  };
  ContextOptions context = TracedModel::small_context();
  EXPECT_EQ(refused({.path = "/nowhere/model.gguf"}, context).kind, Kind::NotFound);

  context.cache_type_k = "q9_9";
  const EngineError type = refused({.path = shape("small")}, context);
  EXPECT_EQ(type.kind, Kind::BadOption);
  EXPECT_TRUE(type.message.contains("q9_9") && type.message.contains("q8_0")) << type.message;

  context = TracedModel::small_context();
  context.cache_type_v = "q8_0";
  context.flash_attention = FlashAttention::Off;
  EXPECT_TRUE(refused({.path = shape("small")}, context).message.contains("flash attention"));

  auto cancelled = Engine::load({.path = shape("small")}, TracedModel::small_context(),
                                [](float) { return false; });
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().kind, Kind::Cancelled);
}

TEST(EngineAnswers, LoadingTellsItsProgress) {
  need_backends();
  std::vector<float> progress;
  auto engine = Engine::load({.path = shape("small")}, TracedModel::small_context(), [&](float p) {
    progress.push_back(p);
    return true;
  });
  ASSERT_TRUE(engine.has_value());
  EXPECT_GT(progress.size(), 2U);
  EXPECT_TRUE(std::ranges::is_sorted(progress));
  EXPECT_EQ(progress.back(), 1.0F);
}

// ---------------------------------------------------------------- the context's end

TEST(EngineContext, AFullOneIsAnAnswerAndTheNextRequestWorks) {
  ContextOptions context = TracedModel::small_context();
  context.context = 256;
  TracedModel traced(shape("small"), context);
  const auto run = traced.run(greedy_tokens(250, 100));
  EXPECT_EQ(run.result.reason, StopReason::ContextFull);
  EXPECT_EQ(run.result.error, "");
  // Six more fit, and the last one that is sampled needs no cell.
  EXPECT_EQ(run.result.generated, 7U);
  EXPECT_EQ(run.info.state, SessionState::Done);
  EXPECT_EQ(run.steps().size(), 4U + 6U);

  const auto whole = traced.run(greedy_tokens(256, 5));
  EXPECT_EQ(whole.result.reason, StopReason::ContextFull);
  EXPECT_EQ(whole.result.generated, 1U);

  const auto next = traced.run(greedy_tokens(5, 5));
  EXPECT_EQ(next.result.reason, StopReason::Length);
  TracedModel fresh(shape("small"), context);
  EXPECT_EQ(next.heard.tokens, fresh.run(greedy_tokens(5, 5)).heard.tokens);
}

// ---------------------------------------------------------------- what comes out

TEST(EngineOutput, EqualsPlainLlamaCpp) {
  for (const char* name : {"small", "gpt-oss-like", "mamba"}) {
    SCOPED_TRACE(name);
    TracedModel traced(shape(name));
    PlainLlama plain(shape(name), TracedModel::small_context());
    const auto request = greedy_tokens(100, 20);
    const auto run = traced.run(request);
    Ids generated;
    for (const Token& token : run.heard.tokens) {
      if (token.generated) generated.push_back(token.id);
    }
    EXPECT_EQ(generated, plain.greedy(std::get<Ids>(request.prompt), 20));
  }
}

TEST(EngineOutput, SeedsDecide) {
  TracedModel traced(shape("small"));
  GenerationRequest request = text_request("once upon", 24);
  EXPECT_EQ(traced.run(request).result.text, traced.run(request).result.text) << "temperature 0";

  request.sampling.temperature = 1.5F;
  request.sampling.seed = 7;
  const auto seven = traced.run(request);
  EXPECT_EQ(seven.result.seed, 7U);
  EXPECT_EQ(seven.result.text, traced.run(request).result.text);
  request.sampling.seed = 8;
  EXPECT_NE(seven.result.text, traced.run(request).result.text);

  // A drawn seed is told, so that the run can be had again.
  request.sampling.seed = 0xFFFFFFFFu;
  const auto drawn = traced.run(request);
  EXPECT_NE(drawn.result.seed, 0xFFFFFFFFu);
  request.sampling.seed = drawn.result.seed;
  EXPECT_EQ(drawn.result.text, traced.run(request).result.text);
}

TEST(EngineOutput, AGrammarRestrictsIt) {
  TracedModel traced(shape("small"));
  GenerationRequest request = text_request("is the sea wet", 40);
  request.sampling.grammar = "root ::= \"yes\" | \"no\"";
  for (const bool ignore_eos : {false, true}) {
    for (const float temperature : {0.0F, 1.0F}) {
      request.ignore_eos = ignore_eos;
      request.sampling.temperature = temperature;
      ASSERT_TRUE(traced.engine().check(request).has_value());
      const auto run = traced.run(request);
      EXPECT_TRUE(run.result.text == "yes" || run.result.text == "no") << run.result.text;
      EXPECT_EQ(run.result.reason, StopReason::Eos) << run.result.error;
    }
  }
  request.sampling.grammar = "root ::= [0-9]+";
  request.max_tokens = 10;
  const auto digits = traced.run(request);
  EXPECT_TRUE(digits.result.text.find_first_not_of("0123456789") == std::string::npos)
      << digits.result.text;

  for (const char* bad : {"root ::= \"yes", "answer ::= \"yes\"", "nonsense"}) {
    request.sampling.grammar = bad;
    const auto checked = traced.engine().check(request);
    ASSERT_FALSE(checked.has_value()) << bad;
    EXPECT_EQ(checked.error().kind, Kind::BadGrammar);
    EXPECT_TRUE(checked.error().message.contains("GBNF")) << checked.error().message;
    EXPECT_EQ(traced.run(request).result.error, checked.error().message);
  }
}

// Five characters from the middle on that are whole: not of a replacement for broken UTF-8.
std::string five_letters(const std::string& text) {
  for (std::size_t at = text.size() / 2; at + 5 <= text.size(); ++at) {
    const std::string five = text.substr(at, 5);
    if (std::ranges::all_of(five, [](char c) { return c >= ' '; })) return five;
  }
  ADD_FAILURE() << "no ASCII in: " << text;
  return {};
}

TEST(EngineOutput, StopStringsNeverAppear) {
  TracedModel traced(shape("small"));
  GenerationRequest request = text_request("once upon", 60);
  request.sampling.temperature = 1.0F;
  request.sampling.seed = 5;
  const auto free = traced.run(request);
  // Something that crosses a token's border in what it would say.
  const std::string stop = five_letters(free.result.text);
  const std::size_t at = free.result.text.find(stop);
  request.stop = {stop, "never said"};
  const auto stopped = traced.run(request);
  EXPECT_EQ(stopped.result.reason, StopReason::Stop);
  EXPECT_EQ(stopped.result.text, free.result.text.substr(0, at));
  EXPECT_EQ(stopped.heard.text, stopped.result.text);
  // What only might have become a stop string is text in the end.
  request.stop = {free.result.text.substr(free.result.text.size() - 3) + "..."};
  const auto held = traced.run(request);
  EXPECT_EQ(held.result.reason, StopReason::Length);
  EXPECT_EQ(held.result.text, free.result.text);
  EXPECT_EQ(held.heard.text, free.result.text);
}

struct PieceListener final : GenerationListener {
  void on_token(const Token& token, std::string_view piece) override {
    EXPECT_EQ(to_valid_utf8(piece), piece);
    if (token.generated) {
      text += piece;
      bytes += token.text;
    }
  }
  void on_progress(std::uint32_t, std::uint32_t, std::uint32_t) override {}
  void on_text(std::string_view rest) override {
    EXPECT_EQ(to_valid_utf8(rest), rest);
    text += rest;
  }
  std::string text, bytes;
};

TEST(EngineOutput, StreamsWholeCharacters) {
  // The tokenizer falls back to bytes, and the grammar makes it say what takes several of them.
  TracedModel traced(shape("small"));
  GenerationRequest request = text_request("say it", 60);
  request.sampling.grammar = "root ::= \"\u20AC\u00E9\U0001F600\" [\u4E00-\u4EFF]+";
  PieceListener listener;
  traced.engine().reset_cancel();
  const auto result = traced.engine().generate(request, nullptr, listener);
  EXPECT_TRUE(result.text.starts_with("\u20AC\u00E9\U0001F600")) << result.text << result.error;
  EXPECT_EQ(listener.text, result.text);
  EXPECT_EQ(to_valid_utf8(listener.bytes), result.text + "<|im_end|>");

  // Any bytes at all, at a high temperature.
  request.sampling.grammar.clear();
  request.sampling.temperature = 5.0F;
  request.sampling.top_k = 0;
  request.sampling.top_p = 1;
  request.sampling.min_p = 0;
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    request.sampling.seed = seed;
    PieceListener any;
    const auto noise = traced.engine().generate(request, nullptr, any);
    EXPECT_EQ(any.text, noise.text);
  }
}

TEST(EngineOutput, AConversationGoesThroughTheChatTemplate) {
  TracedModel traced(shape("small"));
  ASSERT_TRUE(traced.engine().facts().has_chat_template);
  const auto chat = traced.engine().tokens_of(
      std::vector<ChatMessage>{{"system", "Be brief."}, {"user", "Hello"}});
  ASSERT_TRUE(chat.has_value()) << chat.error().message;
  std::string text;
  for (const std::int32_t token : *chat) text += traced.engine().piece(token);
  // The tokenizer puts a space before what follows a special token.
  std::erase(text, ' ');
  EXPECT_EQ(text,
            "<s><|im_start|>system\nBebrief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(EngineOutput, ATitleEndsWithAWholeCharacter) {
  TracedModel traced(shape("small"));
  const auto title_of = [&](const std::string& prompt) {
    return traced.engine().describe(text_request(prompt, 1)).title;
  };
  const auto times = [](int n, const std::string& text) {
    std::string all;
    for (int i = 0; i < n; ++i) all += text;
    return all;
  };
  EXPECT_EQ(title_of(times(100, "\u6D77")), times(26, "\u6D77"));
  EXPECT_EQ(title_of(times(100, "\U0001F30A")), times(20, "\U0001F30A"));
  EXPECT_EQ(title_of(times(100, "s")), times(80, "s"));
  EXPECT_EQ(title_of("two\nlines"), "two lines");
  EXPECT_EQ(title_of(times(100, "\x80")), times(80, "\uFFFD")) << "what is no character is shown";
}

// ---------------------------------------------------------------- threads

// Of a step the library itself says with how many it ran.
TEST(EngineThreads, OfPromptsAndOfDecodesAreThoseAskedFor) {
  struct Case {
    std::int32_t threads, batch;
    std::uint32_t of_prompt, of_decode;
  };
  for (const Case& c : {Case{1, 3, 3, 1}, Case{2, 0, 2, 2}, Case{2, 1, 1, 2}}) {
    SCOPED_TRACE(std::format("-t {} -tb {}", c.threads, c.batch));
    ContextOptions context = TracedModel::small_context();
    context.threads = c.threads;
    context.threads_batch = c.batch;
    modelgen::ModelSpec spec;
    spec.shape = "small";
    spec.dims.layers = 1;
    TracedModel traced(generated_model(spec), context);
    const auto steps = traced.run(greedy_tokens(70, 3)).steps();
    ASSERT_EQ(steps.size(), 4U);  // 64, 6, 1, 1
    for (const Step& step : steps)
      EXPECT_EQ(step.threads, step.n_tokens > 1 ? c.of_prompt : c.of_decode) << step.id.v;
  }
}

// ---------------------------------------------------------------- other kinds of model

TEST(EnginePhases, AnEncoderRunsBeforeItsDecoder) {
  TracedModel traced(shape("t5"));
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
  // Another text, another answer: the decoder looks at what was encoded.
  const auto other = traced.run(text_request("quite something else", 4));
  const auto again = traced.run(text_request("the old sea", 4));
  EXPECT_NE(other.heard.tokens.back(), run.heard.tokens.back());
  EXPECT_EQ(again.heard.tokens, run.heard.tokens);
}

TEST(EnginePhases, AnEmbeddingModelEmbedsInOneStep) {
  TracedModel traced(shape("bert"));
  ASSERT_TRUE(traced.engine().facts().embedding_only);
  GenerationRequest ruled = text_request("the old sea", 4);
  ruled.sampling.grammar = "root ::= \"yes\"";
  const auto refused = traced.engine().check(ruled);
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(refused.error().message.contains("generates no text")) << refused.error().message;
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
  PlainLlama plain(shape("bert"), options, {}, true);
  const auto tokens = traced.engine().tokens_of("the old sea and the wind");
  ASSERT_TRUE(tokens.has_value());
  EXPECT_EQ(run.result.embedding, plain.embedding(*tokens));
}

// There is nothing to continue from, so that nothing has to be remembered for it.
TEST(EnginePhases, AnEmbeddingModelKeepsNothingOfItsRequests) {
  constexpr int kRequests = 100;
  constexpr std::size_t kTokens = 200;
  TracedModel traced(shape("bert"));
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
