// A request that begins like the previous one reuses the cells of the common prefix. The output
// is the same as without reuse.
#include <gtest/gtest.h>

#include <cstdio>
#include <format>
#include <map>
#include <span>
#include <string>

#include "tests/support/models/arch_model.h"
#include "tests/support/models/traced_model.h"
#include "tracer/engine/prefix_match.h"

namespace tt::test {
namespace {

using Ids = std::vector<std::int32_t>;

GenerationRequest request_of(Ids ids, std::uint32_t generate, bool reuse) {
  GenerationRequest request = greedy_tokens(1, generate);
  request.prompt = std::move(ids);
  request.reuse_prefix = reuse;
  return request;
}

Ids ids(std::size_t count, std::int32_t first = 1) {
  Ids list;
  for (std::size_t i = 0; i < count; ++i) {
    list.push_back(1 + (first + static_cast<std::int32_t>(i) * 7) % 60);
  }
  return list;
}

Ids joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Ids generated_ids(const TracedModel::Run& run) {
  Ids list;
  for (const Token& token : run.captured.tokens) {
    if (token.generated) list.push_back(token.id);
  }
  return list;
}

TEST(PrefixReuse, IsRecorded) {
  TracedModel traced(two_layer_model("small"));
  traced.run(request_of(ids(40), 5, true));
  const Ids prompt = joined(ids(30), ids(10, 33));
  const auto run = traced.run(request_of(prompt, 5, true));
  EXPECT_EQ(run.result.reused_tokens, 30U);
  const auto steps = run.steps();
  ASSERT_EQ(steps.size(), 1U + 4U);
  EXPECT_EQ(steps[0].n_tokens, 10U);
  EXPECT_EQ(steps[0].first_token, 30U);
  const auto tokens = run.reader().tokens(0, 100);
  ASSERT_TRUE(tokens.has_value());
  ASSERT_EQ(tokens->size(), 45U);
  for (const Token& token : *tokens) {
    EXPECT_EQ(token.reused, token.index < 30) << token.index;
    EXPECT_EQ(token.generated, token.index >= 40) << token.index;
    EXPECT_EQ(token.position, static_cast<std::int32_t>(token.index));
  }
  // The positions of the step are those of the tokens, not counted from 0.
  const auto graph = graph_of(run.reader(), steps[0]);
  bool seen = false;
  for (std::size_t i = 0; i < graph->slots.size(); ++i) {
    if (graph->slots[i].kind != SlotKind::Positions) continue;
    seen = true;
    ASSERT_EQ(steps[0].slots[i].ints.size(), 10U);
    EXPECT_EQ(steps[0].slots[i].ints.front(), 30);
    EXPECT_EQ(steps[0].slots[i].ints.back(), 39);
  }
  EXPECT_TRUE(seen);
}

TEST(PrefixReuse, IncludesGeneratedTokens) {
  TracedModel traced(two_layer_model("small"));
  const auto first = traced.run(request_of(ids(20), 10, true));
  // The next turn of a conversation: the prompt is the previous text and more.
  const Ids prompt = joined(joined(ids(20), generated_ids(first)), ids(5, 9));
  // The weights are random: after a token, the kernels of a processor for one and for many tokens
  // may decide a close choice differently.
  const auto run = traced.run(request_of(prompt, 1, true));
  // The last generated token was never evaluated.
  EXPECT_EQ(run.result.reused_tokens, 29U);
  TracedModel fresh(two_layer_model("small"));
  EXPECT_EQ(generated_ids(run), generated_ids(fresh.run(request_of(prompt, 1, false))));
}

// A line at the begin has changed, as in system prompts with the date; the rest is evaluated again.
TEST(PrefixReuse, RecordsWhereThePromptsDiffer) {
  TracedModel traced(two_layer_model("small"));
  const Ids first = joined(joined(ids(10), {61}), ids(40, 5));
  const Ids second = joined(joined(ids(10), {62, 63}), ids(40, 5));
  EXPECT_TRUE(traced.run(request_of(first, 5, true)).result.cached.tokens == 0);
  const auto run = traced.run(request_of(second, 5, true));
  const CachedTokens& cached = run.result.cached;
  EXPECT_EQ(run.result.reused_tokens, 10U);
  EXPECT_EQ(cached.tokens, 51U + 4U) << "the last generated token was not evaluated";
  EXPECT_EQ(cached.common, 10U);
  EXPECT_EQ(cached.repeated, 40U);
  EXPECT_EQ(cached.end, ReuseEnd::OtherToken);
  const auto text_of = [&](const Ids& prompt, std::size_t from, std::size_t count) {
    std::string text;
    for (std::size_t i = from; i < from + count; ++i) text += traced.engine().piece(prompt[i]);
    return text;
  };
  EXPECT_EQ(cached.before, text_of(first, 2, 8));
  EXPECT_EQ(cached.prompt, text_of(second, 10, 8));
  EXPECT_EQ(cached.cached, text_of(first, 10, 8));
  const auto info = run.reader().info();
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->fact("result.reuse_end"), "other_token");
  EXPECT_EQ(info->fact("result.repeated_tokens"), "40");
  EXPECT_EQ(info->fact("result.text_cached"), cached.cached);

  // All that was in the memory is reused: nothing ended it.
  const auto next =
      traced.run(request_of(joined(joined(second, generated_ids(run)), {5}), 2, true));
  EXPECT_EQ(next.result.cached.end, ReuseEnd::None);
  EXPECT_EQ(next.reader().info()->fact("result.reuse_end"), "");
}

// The message is found by the control tokens of the template: <s> 1, and others from 100 on.
TEST(PrefixReuse, NamesTheMessageThatDiffers) {
  const std::map<std::int32_t, std::string> texts = {{1, "<s>"},
                                                     {100, "<|im_start|>"},
                                                     {101, "<|im_end|>"},
                                                     {2, "user"},
                                                     {102, "<|start_header_id|>"},
                                                     {103, "<|end_header_id|>"},
                                                     {3, "\n"},
                                                     {104, "[INST]"},
                                                     {105, "[/INST]"},
                                                     {4, "Hi"},
                                                     {5, "there"}};
  const TokenWords words{.text_of =
                             [&](std::span<const std::int32_t> some) {
                               std::string text;
                               for (const std::int32_t id : some) text += texts.at(id);
                               return text;
                             },
                         .is_control = [](std::int32_t id) { return id == 1 || id >= 100; }};
  const auto part = [&](const Ids& prompt, std::size_t at) {
    const PromptPart found = part_of(prompt, at, words);
    return std::format("{} {}", found.number, found.begin);
  };
  const Ids chatml = {1, 100, 2, 3, 4, 101, 3, 100, 2, 3, 4, 5, 101, 3};
  EXPECT_EQ(part(chatml, 4), "1 <|im_start|>user");
  EXPECT_EQ(part(chatml, 11), "2 <|im_start|>user");
  EXPECT_EQ(part(chatml, 7), "2 <|im_start|>user") << "the control token itself";
  EXPECT_EQ(part(chatml, 0), "0 ");
  const Ids llama = {1, 102, 2, 103, 3, 4, 102, 2, 103, 3, 5};
  EXPECT_EQ(part(llama, 5), "1 <|start_header_id|>user<|end_header_id|>");
  EXPECT_EQ(part(llama, 10), "2 <|start_header_id|>user<|end_header_id|>");
  const Ids mistral = {1, 104, 4, 105, 5, 104, 4, 5, 105};
  EXPECT_EQ(part(mistral, 2), "1 [INST]");
  EXPECT_EQ(part(mistral, 4), "1 [/INST]");
  EXPECT_EQ(part(mistral, 7), "2 [INST]");
  EXPECT_EQ(part({1, 4, 5, 4}, 3), "0 ") << "a template of plain text";
  EXPECT_EQ(part({}, 0), "0 ");
}

// The state of a recurrent model cannot be taken back.
TEST(PrefixReuse, RecordsThatARecurrentStateWasDropped) {
  TracedModel traced(two_layer_model("mamba"));
  traced.run(request_of(ids(30), 4, true));
  const auto run = traced.run(request_of(joined(ids(20), ids(9, 33)), 4, true));
  EXPECT_EQ(run.result.reused_tokens, 0U);
  EXPECT_EQ(run.result.cached.end, ReuseEnd::RecurrentState);
  EXPECT_EQ(run.result.cached.common, 20U);
}

TEST(PrefixReuse, EvaluatesAtLeastOneToken) {
  TracedModel traced(two_layer_model("small"));
  const auto first = traced.run(request_of(ids(20), 3, true));
  const auto same = traced.run(request_of(ids(20), 3, true));
  EXPECT_EQ(same.result.reused_tokens, 19U);
  EXPECT_EQ(generated_ids(same), generated_ids(first));
  const auto unwanted = traced.run(request_of(ids(20), 3, false));
  EXPECT_EQ(unwanted.result.reused_tokens, 0U);
  EXPECT_EQ(generated_ids(unwanted), generated_ids(first));
}

// Every kind of memory: full, sliding window, recurrent, hybrid. How much of the prefix is kept
// depends on the kind; the output must not depend on it.
TEST(PrefixReuse, NeverChangesOutput) {
  const std::filesystem::path models[] = {
      two_layer_model("small"),   two_layer_model("gpt-oss-like"), two_layer_model("deepseek-like"),
      two_layer_model("mamba"),   two_layer_model("rwkv"),         two_layer_model("t5"),
      arch_model("gemma3-dense"), arch_model("jamba-dense"),       arch_model("falcon-h1-dense"),
      arch_model("qwen3next-moe")};
  for (const auto& model : models) {
    SCOPED_TRACE(model.filename());
    ContextOptions context = TracedModel::small_context();
    TracedModel traced(model, context);
    TracedModel fresh(model, context);
    // Results round differently for other ubatch boundaries. Prefixes therefore end at ubatch
    // boundaries (64), so both runs evaluate the rest in the same chunks.
    const Ids base = ids(200);
    const auto start = [&](std::size_t count) {
      return Ids(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(count));
    };
    struct Case {
      const char* name;
      Ids prompt;
    };
    const Case cases[] = {
        {"first", base},
        {"cut back a little", joined(start(192), ids(8, 3))},
        {"cut back far", joined(start(64), ids(30, 5))},
        {"longer", base},
        {"one token more", start(129)},
        {"the same again", start(129)},
        {"nothing in common", ids(25, 41)},
    };
    std::string kept;
    for (const Case& c : cases) {
      SCOPED_TRACE(c.name);
      const auto with = traced.run(request_of(c.prompt, 6, true));
      const auto without = fresh.run(request_of(c.prompt, 6, false));
      ASSERT_EQ(with.result.reason, StopReason::Length) << with.result.error;
      EXPECT_EQ(generated_ids(with), generated_ids(without));
      EXPECT_EQ(without.result.reused_tokens, 0U);
      kept += " " + std::to_string(with.result.reused_tokens);
    }
    std::printf("%s: reused%s\n", model.filename().c_str(), kept.c_str());
  }
}

}  // namespace
}  // namespace tt::test
