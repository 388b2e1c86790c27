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
#include "tests/support/sessions/small_session.h"
#include "tests/support/temp_folder.h"

namespace tt::test {
namespace {

constexpr PageRange kAllTokens{.from = 0, .limit = 1'000'000};

struct OpenedSide {
  explicit OpenedSide(const std::filesystem::path& file)
      : reader(SessionReader::open(file).value()), index(SessionIndex::build(reader).value()) {}
  ComparedSession side() const { return {.index = index, .reader = reader}; }
  SessionReader reader;
  SessionIndex index;
};

Comparison compared(const OpenedSide& left, const OpenedSide& right,
                    PageRange tokens = kAllTokens) {
  auto comparison = compare(left.side(), right.side(), tokens);
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
  const Comparison comparison = compared(one, one);
  EXPECT_EQ(comparison.left, comparison.right);
  for (const ComparedBy& by : comparison.by)
    for (const ComparedRow& row : by.rows) EXPECT_EQ(row.left, row.right) << row.name;
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
  EXPECT_NEAR(static_cast<double>(changed->left.fastest.v), 500, 2);  // per token
  EXPECT_NEAR(changed->time.ratio, 2, 0.01);
  EXPECT_EQ(changed->time.verdict, SpeedVerdict::Slower);
  EXPECT_EQ(compared(right, left).change->time.verdict, SpeedVerdict::Faster);
  EXPECT_EQ(compared(left, left).change->time.verdict, SpeedVerdict::Equal);
  EXPECT_DOUBLE_EQ(compared(left, left).change->time.ratio, 1);
  EXPECT_FALSE(compared(short_side, right).change->time.low.has_value());
  EXPECT_EQ(compared(short_side, right).change->left.steps, 4U);
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
  EXPECT_DOUBLE_EQ(comparison.right.executions, 2 * comparison.left.executions);
}

TEST(Comparison, RowsOfOneSideHaveNoCounterpart) {
  GraphTemplate other = small_graph();
  other.fingerprint = 2;
  other.nodes.back().op = "SCALE";
  for (Tensor& tensor : other.tensors)
    if (tensor.name == "output.weight") tensor.name = "lm_head.weight";
  const SmallSession a({small_step(0)}), b({small_step(0)}, SmallSession::small_info(), other);
  const OpenedSide left(a.path), right(b.path);
  const Comparison comparison = compared(left, right, {.from = 1, .limit = 1});
  ASSERT_EQ(comparison.templates.size(), 2U);
  EXPECT_EQ(comparison.templates[0].match, TemplateMatch::OnlyLeft);
  EXPECT_EQ(comparison.templates[1].match, TemplateMatch::OnlyRight);
  std::map<std::string, std::pair<bool, bool>> sides;
  for (const ComparedBy& by : comparison.by)
    for (const ComparedRow& row : by.rows)
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
  EXPECT_EQ(compare(one.side(), one.side(), kAllTokens, [] { return false; }).error().kind,
            TraceError::Kind::Cancelled);
}

}  // namespace
}  // namespace tt::test
