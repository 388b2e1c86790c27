// Compares the comparison of two sessions with a walk over every access of both.
#include "analysis/report/comparison.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/analysis/report/comparison_check.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/prompt_steps.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/temp_folder.h"

namespace tt::test {
namespace {

struct OpenedSide {
  explicit OpenedSide(const std::filesystem::path& file)
      : reader(SessionReader::open(file).value()), index(SessionIndex::build(reader).value()) {}
  ComparedSession side() const { return {.index = index, .reader = reader}; }
  SessionReader reader;
  SessionIndex index;
};

Comparison compared(const OpenedSide& left, const OpenedSide& right,
                    const CompareQuery& query = {}) {
  auto comparison = compare(left.side(), right.side(), query);
  EXPECT_TRUE(comparison.has_value()) << comparison.error().message;
  return *std::move(comparison);
}

TEST(Comparison, MatchesReference) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    ASSERT_TRUE(write_session(folder / "a.ttrace", plausible_session(2 * seed)).has_value());
    ASSERT_TRUE(write_session(folder / "b.ttrace", plausible_session(2 * seed + 1)).has_value());
    const OpenedSide left(folder / "a.ttrace"), right(folder / "b.ttrace");
    expect_comparison(left.side(), right.side());
  }
}

TEST(Comparison, SessionEqualsItself) {
  const SmallSession session({small_step(0)});
  const OpenedSide one(session.path);
  const Comparison comparison = compared(one, one, {.by = Axis::Tensor});
  EXPECT_EQ(comparison.phase, Phase::Prompt);
  EXPECT_EQ(comparison.total.left, comparison.total.right);
  EXPECT_FALSE(comparison.rows.empty());
  for (const ComparedRow& row : comparison.rows) EXPECT_EQ(row.left, row.right) << row.name;
  ASSERT_EQ(comparison.templates.size(), 1U);
  EXPECT_EQ(comparison.templates[0].match, TemplateMatch::Identical);
  EXPECT_EQ(comparison.tokens.common, 2U);
  ASSERT_EQ(comparison.tokens.rows.rows.size(), 2U);
  EXPECT_EQ(comparison.tokens.rows.rows[0].left_ns, Ns{85});  // half of a step of 170 ns
}

// Generated steps of 2 tokens each, of about `ns`; the last two are disturbed and take ten times as
// long.
std::vector<Step> steps_of(std::uint32_t count, std::int64_t ns) {
  std::vector<Step> steps = {small_step(0)};
  for (std::uint32_t i = 1; i <= count + 2; ++i) {
    Step step = small_step(i);
    const std::int64_t took = i > count ? 10 * ns : ns + 2 * (i % 3);
    step.begin = Ns{std::int64_t{i} * 1'000'000};
    step.first_op = step.begin;
    for (Ns& end : step.op_ends) end = Ns{end.v + step.begin.v};
    step.end = Ns{step.begin.v + took};
    step.dropped = i > count;
    steps.push_back(std::move(step));
  }
  return steps;
}

TEST(Comparison, TellsAChangeOfTimeFromNoise) {
  const SmallSession slow(steps_of(20, 2000)), fast(steps_of(12, 1000)), few(steps_of(4, 1000));
  const OpenedSide left(fast.path), right(slow.path), short_side(few.path);
  const auto changed = compared(left, right).change;
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(changed->phase, Phase::Generate);
  EXPECT_EQ(changed->left.steps, 12U);
  EXPECT_EQ(changed->right.steps, 20U);
  EXPECT_NEAR(static_cast<double>(changed->left.median.v), 501, 1);  // per token
  EXPECT_NEAR(changed->time.ratio, 2, 0.01);
  EXPECT_EQ(changed->time.verdict, SpeedVerdict::Slower);
  EXPECT_EQ(compared(right, left).change->time.verdict, SpeedVerdict::Faster);
  EXPECT_EQ(compared(left, left).change->time.verdict, SpeedVerdict::Equal);
  EXPECT_DOUBLE_EQ(compared(left, left).change->time.ratio, 1);
  EXPECT_FALSE(compared(short_side, right).change->time.low.has_value());
  EXPECT_EQ(compared(short_side, right).change->left.steps, 4U);
  // The table has the same steps and the same figure.
  const ComparedTimes times = compared(left, right).step_times.at(Phase::Generate);
  EXPECT_EQ(times.left->steps.used, 12U);
  EXPECT_EQ(times.left->steps.interrupted, 2U);
  EXPECT_EQ(times.left->spread->median.v, 2 * changed->left.median.v);
  EXPECT_NEAR(changed->time.ratio,
              static_cast<double>(times.right->spread->median.v) /
                  static_cast<double>(times.left->spread->median.v),
              1e-9);
}

// A step of 20 tokens that counts is not divided by the mean number of tokens of all steps.
TEST(Comparison, TimesPerTokenAreOfTheCountedSteps) {
  using enum Timing;
  const SmallSession some(prompt_steps({{512, Learned}, {512, Learned}, {20, Fast}})),
      all(prompt_steps({{10, Learned}, {512, Fast}, {512, Fast}, {20, Fast}}));
  for (const SmallSession* session : {&some, &all}) {
    const OpenedSide side(session->path);
    const auto costs = step_costs(side.index, Axis::OpKind, {.phase = Phase::Prompt}).value();
    EXPECT_EQ(costs.timed.tokens, session == &some ? 20U : 1044U);
    EXPECT_EQ(costs.timed.same_tokens, session == &some);
    EXPECT_EQ(costs.total_token_ns, 1000);
  }
}

// What was only measured while graphs were learned has no time.
TEST(Comparison, LearnedStepsHaveNoTimes) {
  const SmallSession a(prompt_steps({{30, Timing::Learned}})),
      b(prompt_steps({{30, Timing::Learned}, {30, Timing::Fast}}));
  const OpenedSide left(a.path), right(b.path);
  const Comparison comparison = compared(left, right, {.by = Axis::OpKind});
  EXPECT_FALSE(comparison.step_times.at(Phase::Prompt).left->spread.has_value());
  EXPECT_EQ(comparison.step_times.at(Phase::Prompt).left->steps.learned, 1U);
  EXPECT_EQ(comparison.step_times.at(Phase::Prompt).right->spread->median, Ns{30'000});
  EXPECT_EQ(
      to_text(comparison.step_times.at(Phase::Prompt).left->steps),
      "Times: no prompt step has a time of the model; left out: 1 learned. The recording slows "
      "down the step in which a graph appears first: to know the time, run another prompt "
      "while the model stays loaded.");
}

// The right session is longer, has a slower prompt, and one of its steps waited: none of this makes
// an op slower.
TEST(Comparison, RowsAreOfAUsualStepOfOnePhase) {
  const auto session = [](std::uint32_t count, std::int64_t prompt, std::int64_t waited) {
    std::vector<Step> steps;
    for (std::uint32_t i = 0; i < count; ++i) {
      Step step = small_step(i);
      step.begin = step.first_op = Ns{std::int64_t{i} * 10'000'000};
      const std::int64_t more = i == 0 ? prompt : i == 2 ? waited : 0;
      for (std::size_t op = 0; op < step.op_ends.size(); ++op)
        step.op_ends[op] = Ns{step.begin.v + more + 10 * static_cast<std::int64_t>(op + 1)};
      step.end = step.op_ends.back();
      steps.push_back(std::move(step));
    }
    return steps;
  };
  const SmallSession a(session(4, 0, 0)), b(session(9, 5'000'000, 900'000));
  const OpenedSide left(a.path), right(b.path);
  const Comparison comparison = compared(left, right, {.by = Axis::OpKind});
  EXPECT_EQ(comparison.phase, Phase::Generate);
  EXPECT_EQ(comparison.total.left, comparison.total.right);
  EXPECT_EQ(comparison.total.left->time_ns, 50);
  EXPECT_EQ(comparison.total.left->executions, 5);
  for (const ComparedRow& row : comparison.rows) EXPECT_EQ(row.left, row.right) << row.name;
  const Comparison prompts = compared(left, right, {.by = Axis::OpKind, .phase = Phase::Prompt});
  EXPECT_EQ(prompts.rows.front().name, "GET_ROWS");
  EXPECT_EQ(prompts.rows.front().right->time_ns, 5'000'010);
  EXPECT_EQ(prompts.rows.front().left->time_ns, 10);
  // Layers of one session, too: the prompt and the step that waited do not count.
  const auto layers =
      compare_within(right.index, {.axis = Axis::Layer, .left = 0, .right = 1}).value();
  EXPECT_EQ(layers.phase, Phase::Generate);
  EXPECT_EQ(layers.left_sums.executions, 2);
  EXPECT_EQ(layers.left_sums.time_ns, 20);
  EXPECT_EQ(layers.right_sums.time_ns, 10);
}

TEST(Comparison, DifferentQuantizationHasTheSameOps) {
  GraphTemplate other = small_graph();
  other.fingerprint = 1;
  for (Tensor& tensor : other.tensors)
    if (tensor.name == "output.weight") tensor.type = "q8_0";
  const SmallSession a({small_step(0)}),
      b({small_step(0), small_step(1)}, SmallSession::small_info(), other);
  const OpenedSide left(a.path), right(b.path);
  const Comparison comparison = compared(left, right);
  EXPECT_EQ(comparison.templates, (std::vector<ComparedTemplate>{{.match = TemplateMatch::SameOps,
                                                                  .left = TemplateId{1},
                                                                  .right = TemplateId{1},
                                                                  .left_steps = 1,
                                                                  .right_steps = 2,
                                                                  .left_ops = 5,
                                                                  .right_ops = 5}}));
  // Of one step each, although the right session has two.
  EXPECT_EQ(comparison.total.right->executions, comparison.total.left->executions);
}

TEST(Comparison, RowsOfOneSideHaveNoCounterpart) {
  GraphTemplate other = small_graph();
  other.fingerprint = 2;
  other.nodes.back().op = "SCALE";
  for (Tensor& tensor : other.tensors)
    if (tensor.name == "output.weight") tensor.name = "lm_head.weight";
  const SmallSession a({small_step(0)}), b({small_step(0)}, SmallSession::small_info(), other);
  const OpenedSide left(a.path), right(b.path);
  const Comparison comparison = compared(left, right, {.tokens = {.from = 1, .limit = 1}});
  ASSERT_EQ(comparison.templates.size(), 2U);
  EXPECT_EQ(comparison.templates[0].match, TemplateMatch::OnlyLeft);
  EXPECT_EQ(comparison.templates[1].match, TemplateMatch::OnlyRight);
  std::map<std::string, std::pair<bool, bool>> sides;
  for (const Axis by : kComparedAxes)
    for (const ComparedRow& row : compared(left, right, {.by = by}).rows)
      sides[row.name] = {row.left.has_value(), row.right.has_value()};
  EXPECT_EQ(sides.at("output.weight"), std::pair(true, false));
  EXPECT_EQ(sides.at("lm_head.weight"), std::pair(false, true));
  EXPECT_EQ(sides.at("SCALE"), std::pair(false, true));
  EXPECT_EQ(sides.at("MUL_MAT"), std::pair(true, true));
  ASSERT_EQ(comparison.tokens.rows.rows.size(), 1U);  // the requested page
  EXPECT_EQ(comparison.tokens.rows.rows[0].index, 1U);
  EXPECT_EQ(comparison.tokens.rows.total, 2U);
}

TEST(Comparison, CanBeCancelled) {
  const SmallSession session({small_step(0)});
  const OpenedSide one(session.path);
  EXPECT_EQ(compare(one.side(), one.side(), {}, [] { return false; }).error().kind,
            TraceError::Kind::Cancelled);
}

}  // namespace
}  // namespace tt::test
