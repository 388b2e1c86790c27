// Changed outputs: what changes, what follows from it, and what is recorded.
#include "tracer/debug/change.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <format>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/tracer/debug/debugged_run.h"

namespace tt::test {
namespace {

using Until = RunUntil;

TEST(Change, RejectsOtherTexts) {
  for (const char* text : {"", "zero 3", "zero head", "zero head x", "zero head -1", "scale", "set",
                           "scale x", "scale 1 2", "set head 3", "add 3", "zero [", "zero ]0[",
                           "set [0] [1] 2", "zero [0", "zero expert 70000"}) {
    EXPECT_FALSE(Change::parse(text).has_value()) << text;
  }
  EXPECT_TRUE(Change::parse("zero [a]").error().contains("not a list of indices"));
  EXPECT_FALSE(Change::parse(std::string(100'000, '[')).has_value());
  for (const char* text : {"zero", "zero head 3", "zero expert 2", "zero [0-3, *]", "scale 0.5",
                           "scale head 1 -2", "set [1] nan", "set 1e3"}) {
    EXPECT_TRUE(Change::parse(text).has_value()) << text;
  }
}

class Changes : public ::testing::TestWithParam<FlashAttention> {};

// Zeroing a head in the output of the attention: the next op computes what a matrix without the
// columns of this head computes, and the answer differs.
TEST_P(Changes, AZeroedHeadChangesWhatFollows) {
  ContextOptions context = TracedModel::small_context();
  context.flash_attention = GetParam();
  const bool flash = GetParam() == FlashAttention::On;
  // Repacked weights could not be read.
  DebuggedModel model(generated_model({.shape = "small", .dims = {.layers = 3}}), context, false);
  const std::string at = flash ? "op FLASH_ATTN_EXT layer 1" : "kqv_out layer 1";
  std::vector<float> attention, untouched, changed;
  for (const bool change : {false, true}) {
    const auto debugger = model.begin(greedy_tokens(5, 4), {.breakpoints = {at}});
    ASSERT_TRUE(model.resume(*debugger, Until::Breakpoint).has_value());
    if (change) {
      attention = debugger->read("", {})->values;
      const auto made = debugger->change(*Change::parse("zero head 2"));
      ASSERT_TRUE(made.has_value()) << made.error();
      const auto after = debugger->read("", {})->values;
      const std::size_t heads = model.queue().facts()->n_heads, tokens = 5;
      const std::size_t head = after.size() / heads / tokens;
      EXPECT_EQ(made->elements, head * tokens);
      for (std::size_t i = 0; i < after.size(); ++i)
        ASSERT_EQ(after[i], i / head % heads == 2 ? 0.0F : attention[i]) << i;
      EXPECT_TRUE(
          debugger->change(*Change::parse("zero head 99")).error().contains("does not exist"));
      EXPECT_TRUE(debugger->change(*Change::parse("zero expert 0")).error().contains("MUL_MAT_ID"));
    }
    const auto next = model.resume(*debugger, Until::Op);
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(next->place.operation, "MUL_MAT");
    (change ? changed : untouched) = debugger->read("", {})->values;
    if (change) {
      // One element of the product, without the columns of the head. The kernel rounds the inputs.
      const auto weights = debugger->read("src0", *Selection::parse("0"))->values;
      const std::size_t head = weights.size() / model.queue().facts()->n_heads;
      double sum = 0, magnitude = 0;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        if (i / head == 2) continue;
        sum += double{weights[i]} * double{attention[i]};
        magnitude += std::abs(double{weights[i]} * double{attention[i]});
      }
      EXPECT_NEAR(changed[0], sum, 0.01 * magnitude);
    }
    debugger->remove(1);
    EXPECT_FALSE(model.resume(*debugger, Until::Breakpoint).has_value());
    const SessionInfo info = model.session().info().value();
    EXPECT_EQ(!info.fact("altered.0").empty(), change);
    if (change) {
      EXPECT_TRUE(info.fact("altered.0").contains("zero head 2")) << info.fact("altered.0");
    }
  }
  EXPECT_NE(changed, untouched);
}

INSTANTIATE_TEST_SUITE_P(Attention, Changes,
                         ::testing::Values(FlashAttention::Off, FlashAttention::On),
                         [](const auto& of) {
                           return of.param == FlashAttention::On ? "flash" : "plain";
                         });

// Without the experts of the last layer, its output is what went into them: the residual stream.
TEST(Change, ADroppedExpertAddsNothing) {
  DebuggedModel model(generated_model({.shape = "moe", .dims = {.layers = 2}}));
  const auto debugger =
      model.begin(greedy_tokens(3, 1), {.breakpoints = {"^ffn_moe_down layer 1"}});
  ASSERT_TRUE(model.resume(*debugger, Until::Breakpoint).has_value());
  const std::vector<float> before = debugger->read("", {})->values;
  const std::vector<float> experts = debugger->read("src2", {})->values;
  const auto chosen = static_cast<int>(experts.at(0));
  const auto made = debugger->change(*Change::parse("zero expert " + std::to_string(chosen)));
  ASSERT_TRUE(made.has_value()) << made.error();
  const std::vector<float> after = debugger->read("", {})->values;
  const std::size_t row = before.size() / experts.size();
  for (std::size_t i = 0; i < after.size(); ++i)
    ASSERT_EQ(after[i], experts[i / row] == experts[0] ? 0.0F : before[i]) << i;
  EXPECT_EQ(made->elements,
            row * static_cast<std::size_t>(std::ranges::count(experts, experts[0])));
}

// A planted NaN: the condition finds the op that made it, and each that reads it.
TEST(Change, APlantedNanIsFound) {
  DebuggedModel model(generated_model({.shape = "small", .dims = {.layers = 3}}));
  const auto debugger =
      model.begin(greedy_tokens(3, 2), {.breakpoints = {"^l_out layer 0 step 0", "if nan"}});
  const auto first = model.resume(*debugger, Until::Breakpoint);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->breakpoints, std::vector<std::uint32_t>{1});
  ASSERT_TRUE(debugger->change(*Change::parse("set [0,0] nan")).has_value());
  const auto next = model.resume(*debugger, Until::Breakpoint);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->breakpoints, std::vector<std::uint32_t>{2});
  EXPECT_EQ(next->place.op.v, first->place.op.v + 1) << "the norm of layer 1";
}

// A request after an altered one computes its prompt again instead of reading altered keys.
TEST(Change, LaterRequestsDoNotReuseAlteredTokens) {
  const auto path = generated_model({.shape = "small", .dims = {.layers = 3}});
  TracedModel plain(path);
  const auto expected = plain.run(greedy_tokens(9, 6));
  DebuggedModel model(path);
  const auto debugger =
      model.begin(greedy_tokens(9, 2), {.breakpoints = {"^l_out layer 0 step 0"}});
  ASSERT_TRUE(model.resume(*debugger, Until::Breakpoint).has_value());
  ASSERT_TRUE(debugger->change(*Change::parse("scale -3")).has_value());
  EXPECT_FALSE(model.resume(*debugger, Until::Breakpoint).has_value());
  const auto status = model.queue().submit(greedy_tokens(9, 6));
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(wait_until([&] { return has_ended(model.queue().status(status->id)->state); }));
  EXPECT_EQ(model.queue().status(status->id)->reused_tokens, 0U);
  EXPECT_EQ(model.queue().status(status->id)->text, expected.result.text);
}

// ---------------------------------------------------------------- kept changes

struct AlteredRun {
  std::vector<std::int32_t> tokens;
  std::vector<StepValues> values;
  std::vector<MadeChange> changes;
  std::vector<std::string> facts;
};

struct KeptCase {
  const char *name, *shape, *at, *change;
};
enum class How : std::uint8_t { NotAtAll, ByHand, Kept };

// Stops at `at` in each step, or if the change is kept, only in the first one. `release_at`: the
// kept change ends at the stop of this step.
AlteredRun altered_run(DebuggedModel& model, const KeptCase& of, How how,
                       std::optional<std::uint32_t> release_at = {}) {
  GenerationRequest request = greedy_tokens(5, 8);
  request.capture = {"l_out", "^ffn_moe_down", "^result_output"};
  const auto debugger = model.begin(std::move(request), {.breakpoints = {of.at}});
  const bool stops_once = how == How::Kept && !release_at;
  AlteredRun run;
  for (auto stop = model.resume(*debugger, Until::Breakpoint); stop;
       stop = model.resume(*debugger, Until::Breakpoint)) {
    const std::uint32_t step = stop->place.step.v;
    if (how == How::Kept && step == 0) {
      const auto made = debugger->change(*Change::parse(of.change), /*keep=*/true);
      EXPECT_TRUE(made.has_value()) << made.error();
      EXPECT_EQ(debugger->kept().size(), 1U);
    }
    // A step may route no token to an expert.
    if (how == How::ByHand && step < release_at.value_or(UINT32_MAX))
      (void)debugger->change(*Change::parse(of.change));
    if (how == How::Kept && release_at && step + 1 == *release_at) {
      EXPECT_EQ(debugger->kept().at(0).text, of.change);
      EXPECT_TRUE(debugger->release(1));
      EXPECT_FALSE(debugger->release(1));
      EXPECT_TRUE(debugger->kept().empty());
    }
    if (how == How::NotAtAll || stops_once) debugger->remove(1);
  }
  const SessionReader session = model.session();
  for (const Token& token : session.tokens(0, UINT32_MAX).value()) run.tokens.push_back(token.id);
  EXPECT_TRUE(session
                  .for_each_values(StepId{0}, UINT32_MAX,
                                   [&](const StepValues& values) {
                                     run.values.push_back(values);
                                     return true;
                                   })
                  .has_value());
  run.changes = debugger->changes();
  const SessionInfo info = session.info().value();
  for (std::size_t i = 0; !info.fact(std::format("altered.{}", i)).empty(); ++i)
    run.facts.emplace_back(info.fact(std::format("altered.{}", i)));
  return run;
}

// Of each step in which it was made: op and number of elements.
std::map<std::uint32_t, std::pair<std::uint32_t, std::uint64_t>> steps_of(const AlteredRun& run) {
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint64_t>> steps;
  for (const MadeChange& made : run.changes) {
    for (std::uint32_t step = made.place.step.v; step <= made.last_step.v; ++step)
      EXPECT_TRUE(steps.emplace(step, std::pair(made.place.op.v, made.elements)).second) << step;
  }
  return steps;
}

class KeptChanges : public ::testing::TestWithParam<KeptCase> {
 protected:
  static ContextOptions context() {
    ContextOptions options = TracedModel::small_context();
    options.flash_attention = FlashAttention::On;
    return options;
  }
};

// The run of a kept change is that in which the change is made by hand in each step.
TEST_P(KeptChanges, EqualTheChangeMadeInEachStep) {
  const KeptCase& of = GetParam();
  DebuggedModel model(generated_model({.shape = of.shape, .dims = {.layers = 3}}), context());
  const AlteredRun plain = altered_run(model, of, How::NotAtAll);
  const AlteredRun by_hand = altered_run(model, of, How::ByHand);
  const AlteredRun kept = altered_run(model, of, How::Kept);
  EXPECT_EQ(kept.tokens, by_hand.tokens);
  ASSERT_EQ(kept.values.size(), 8U);
  EXPECT_TRUE(kept.values == by_hand.values);
  EXPECT_FALSE(kept.values == plain.values);
  EXPECT_TRUE(plain.facts.empty());
  // Each step in which it was made is recorded, with its elements.
  EXPECT_EQ(steps_of(kept), steps_of(by_hand));
  EXPECT_GT(steps_of(kept).size(), 1U);
  EXPECT_LE(kept.changes.size(), by_hand.changes.size());
  ASSERT_EQ(kept.facts.size(), kept.changes.size());
  for (std::size_t i = 0; i < kept.facts.size(); ++i) {
    const MadeChange& made = kept.changes[i];
    const bool once = made.last_step == made.place.step;
    EXPECT_TRUE(kept.facts[i].starts_with(
        once ? std::format("step {}, op {}", made.place.step.v, made.place.op.v)
             : std::format("steps {} to {}, op {}", made.place.step.v, made.last_step.v,
                           made.place.op.v)))
        << kept.facts[i];
    EXPECT_EQ(made.kept, 1U);
  }
}

TEST_P(KeptChanges, CanBeEnded) {
  const KeptCase& of = GetParam();
  DebuggedModel model(generated_model({.shape = of.shape, .dims = {.layers = 3}}), context());
  const AlteredRun by_hand = altered_run(model, of, How::ByHand, 3);
  const AlteredRun kept = altered_run(model, of, How::Kept, 3);
  EXPECT_EQ(kept.tokens, by_hand.tokens);
  EXPECT_TRUE(kept.values == by_hand.values);
  EXPECT_EQ(steps_of(kept), steps_of(by_hand));
  EXPECT_FALSE(steps_of(kept).contains(3));
}

// An output without a name, one of two norms of a layer with the same name, and rows of an expert.
INSTANTIATE_TEST_SUITE_P(
    Ops, KeptChanges,
    ::testing::Values(KeptCase{"head", "small", "op FLASH_ATTN_EXT layer 1", "zero head 2"},
                      KeptCase{"scale", "small", "^l_out layer 0", "scale -1.5"},
                      KeptCase{"element", "small", "^ffn_out layer 1", "set [0, 3] 2.5"},
                      KeptCase{"expert", "moe", "^ffn_moe_down layer 1", "zero expert 1"}),
    [](const auto& of) { return std::string(of.param.name); });

// What only a prompt has is not made in the steps of one token, and the change says why.
TEST(KeptChange, SaysWhyItDoesNotFit) {
  DebuggedModel model(generated_model({.shape = "small", .dims = {.layers = 3}}));
  const auto debugger = model.begin(greedy_tokens(5, 4), {.breakpoints = {"^l_out layer 0"}});
  ASSERT_TRUE(model.resume(*debugger, Until::Breakpoint).has_value());
  ASSERT_TRUE(debugger->change(*Change::parse("zero [4, *]"), true).has_value());
  ASSERT_TRUE(model.resume(*debugger, Until::Breakpoint).has_value());
  const std::vector<KeptChange> kept = debugger->kept();
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].steps, 1U);
  EXPECT_FALSE(kept[0].problem.empty());
  EXPECT_EQ(debugger->changes().size(), 1U);
  debugger->remove(1);
  EXPECT_FALSE(model.resume(*debugger, Until::Breakpoint).has_value());
}

// With as many records as a run may have, one kept change extends its record, and another, which
// the step of one token follows that of the prompt, would need a new one: it ends, and the session
// says so.
TEST(KeptChange, EndsWhenItCannotBeRecorded) {
  DebuggedModel model(generated_model({.shape = "small", .dims = {.layers = 3}}));
  constexpr std::uint32_t kSteps = 5;
  const auto debugger =
      model.begin(greedy_tokens(5, kSteps),
                  {.breakpoints = {"^l_out layer 1 step 0", "^l_out layer 0 step 1"}});
  ASSERT_TRUE(model.resume(*debugger, Until::Breakpoint).has_value());
  ASSERT_TRUE(debugger->change(*Change::parse("set 1.5"), true).has_value());
  ASSERT_TRUE(model.resume(*debugger, Until::Breakpoint).has_value());
  ASSERT_TRUE(debugger->change(*Change::parse("set 2.5"), true).has_value());
  const auto once = *Change::parse("scale [0] 1");
  while (debugger->changes().size() < Debugger::kMaxChanges)
    ASSERT_TRUE(debugger->change(once).has_value());
  EXPECT_FALSE(debugger->change(once).has_value());
  EXPECT_FALSE(model.resume(*debugger, Until::Breakpoint).has_value());
  const std::vector<KeptChange> kept = debugger->kept();
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].steps, 1U);
  EXPECT_TRUE(kept[0].problem.starts_with("It ended at step 1. ")) << kept[0].problem;
  EXPECT_EQ(kept[1].steps, kSteps - 1);
  EXPECT_EQ(kept[1].problem, "");
  EXPECT_EQ(debugger->changes().size(), Debugger::kMaxChanges);

  const SessionReader session = model.session();
  const SessionInfo info = session.info().value();
  EXPECT_TRUE(
      info.fact("altered.0").ends_with("; ended at step 1: no further change can be recorded"))
      << info.fact("altered.0");
  EXPECT_TRUE(info.fact("altered.1").starts_with("steps 1 to 4, ")) << info.fact("altered.1");
  EXPECT_FALSE(info.fact("altered.1").contains("ended")) << info.fact("altered.1");
}

}  // namespace
}  // namespace tt::test
