// Compares the time per step of rows with a breakdown of each step.
#include "analysis/aggregate/step_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>

#include "analysis/aggregate/breakdown.h"
#include "tests/analysis/aggregate/indexed_session.h"
#include "tests/analysis/aggregate/naive_quantile.h"
#include "tests/support/sessions/plausible_session.h"

namespace tt::test {
namespace {

// By row key: the times of the steps that have one, each from a breakdown of this step alone.
std::map<std::int64_t, std::multiset<std::int64_t>> times_of_single_steps(
    const SessionIndex& index, const SessionReader& reader, Axis by, Phase phase) {
  std::map<std::int64_t, std::multiset<std::int64_t>> times;
  // The first step of the session and disturbed ones only if there are no others.
  enum Kind { Usual, Disturbed, First, None };
  const auto kind_of = [&](std::uint64_t i) {
    const auto step = reader.step(StepId{static_cast<std::uint32_t>(i)});
    if (!step || step->phase != phase || step->op_ends.empty() || step->timing == Timing::Learned ||
        step->dropped || step->aborted)
      return None;
    if (i == 0) return First;
    const auto verdict = verdict_of(step->conditions, step->threads);
    return verdict && *verdict != Verdict::Clean ? Disturbed : Usual;
  };
  Kind used = None;
  for (std::uint64_t i = 0; i < index.steps().size(); ++i) used = std::min(used, kind_of(i));
  for (std::uint64_t i = 0; i < index.steps().size(); ++i) {
    if (used == None || kind_of(i) != used) continue;
    TraceFilter filter;
    filter.steps = Range<std::uint64_t>{i, i + 1};
    const auto found = breakdown(index, {.by = by, .filter = filter});
    EXPECT_TRUE(found.has_value());
    if (!found) continue;
    for (const BreakdownRow& row : found->rows)
      if (row.all.time_ns > 0) times[row.key].insert(std::llround(row.all.time_ns));
  }
  return times;
}

TEST(StepTimes, AreTheQuantilesOfTheTimesInSingleSteps) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed));
    for (const Axis by : {Axis::Layer, Axis::OpKind, Axis::Tensor, Axis::Expert, Axis::All}) {
      for (const Phase phase : {Phase::Generate, Phase::Prompt}) {
        SCOPED_TRACE(to_text(by));
        const auto expected = times_of_single_steps(*session->index, *session->reader, by, phase);
        const auto found =
            breakdown(*session->index, {.by = by, .filter = {.phase = phase}, .step_times = true});
        ASSERT_TRUE(found.has_value());
        for (const BreakdownRow& row : found->rows) {
          SCOPED_TRACE(row.name);
          const auto times = expected.find(row.key);
          ASSERT_EQ(row.step.has_value(), times != expected.end());
          if (!row.step) continue;
          ++compared;
          EXPECT_EQ(row.step->steps, times->second.size());
          EXPECT_EQ(row.step->spread.median.v, naive_quantile(times->second, 0.5));
          EXPECT_EQ(row.step->spread.p5.v, naive_quantile(times->second, 0.05));
          EXPECT_EQ(row.step->spread.p95.v, naive_quantile(times->second, 0.95));
          // What the summary says of a row is what the row has.
          EXPECT_DOUBLE_EQ(row.step->share,
                           static_cast<double>(row.step->spread.median.v) /
                               static_cast<double>(found->total.step->spread.median.v));
        }
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(compared, 200u);
}

// With step times, rows are sorted by them; without, by sums.
TEST(StepTimes, AreWhatRowsAreSortedBy) {
  std::size_t unlike = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed));
    BreakdownQuery query{.by = Axis::Tensor,
                         .order = Order<Value>{.by = Value::Time, .descending = true}};
    const auto by_sum = breakdown(*session->index, query);
    query.step_times = true;
    const auto by_step = breakdown(*session->index, query);
    ASSERT_TRUE(by_sum && by_step);
    const auto median = [](const BreakdownRow& row) {
      return row.step ? row.step->spread.median : Ns{};
    };
    EXPECT_TRUE(std::ranges::is_sorted(by_sum->rows, std::greater(),
                                       [](const BreakdownRow& row) { return row.all.time_ns; }));
    EXPECT_TRUE(std::ranges::is_sorted(by_step->rows, std::greater(), median));
    unlike += !std::ranges::equal(by_sum->rows, by_step->rows, {}, &BreakdownRow::key,
                                  &BreakdownRow::key);
    // Each row of a page is the same.
    query.page = {.from = 1, .limit = 2};
    const auto page = breakdown(*session->index, query);
    ASSERT_TRUE(page.has_value());
    for (std::size_t i = 0; i < page->rows.size(); ++i)
      EXPECT_EQ(page->rows[i], by_step->rows[i + 1]);
  }
  EXPECT_GT(unlike, 5u);
}

TEST(StepTimes, AreOfTheRowsOfThePageAndOfTheTotal) {
  const auto session = open_session(plausible_session(3));
  const BreakdownQuery all{.by = Axis::Tensor, .step_times = true};
  BreakdownQuery page = all;
  page.order = Order<Value>{.by = Value::Time, .descending = true};
  page.page = {.from = 1, .limit = 3};
  const auto whole = breakdown(*session->index, all), part = breakdown(*session->index, page);
  ASSERT_TRUE(whole && part);
  ASSERT_EQ(part->rows.size(), 3u);
  for (const BreakdownRow& row : part->rows) {
    const auto same = std::ranges::find(whole->rows, row.key, &BreakdownRow::key);
    ASSERT_NE(same, whole->rows.end());
    EXPECT_EQ(row, *same);
  }
  EXPECT_EQ(part->total.step, whole->total.step);
  EXPECT_TRUE(whole->total.step.has_value());
}

TEST(StepTimes, AreOnlyComputedOnRequest) {
  const auto session = open_session(plausible_session(3));
  const auto found = breakdown(*session->index, {.by = Axis::Layer});
  ASSERT_TRUE(found.has_value());
  for (const BreakdownRow& row : found->rows) EXPECT_FALSE(row.step.has_value());
  EXPECT_FALSE(found->total.step.has_value());
}

TEST(StepTimes, AreCancelled) {
  const auto session = open_session(plausible_session(3));
  const KeysOfAxis keys[] = {{.by = Axis::All, .keys = {0}}};
  const auto times = step_times(*session->index, keys, {}, [] { return false; });
  ASSERT_FALSE(times.has_value());
  EXPECT_EQ(times.error().kind, TraceError::Kind::Cancelled);
}

}  // namespace
}  // namespace tt::test
