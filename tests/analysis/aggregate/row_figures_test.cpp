// Compares the figures of the rows of a heat map with breakdowns of single steps and tokens.
#include "analysis/aggregate/row_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <format>
#include <map>
#include <set>
#include <vector>

#include "analysis/aggregate/breakdown.h"
#include "tests/analysis/aggregate/indexed_session.h"
#include "tests/analysis/aggregate/naive_quantile.h"
#include "tests/support/sessions/plausible_session.h"

namespace tt::test {
namespace {

struct Unit {
  std::int64_t at = 0;
  bool counts = false;
};

// Of a phase in a range of x, from the steps of the file: which units there are, and which count.
std::vector<Unit> units_in(const SessionIndex& index, const SessionReader& reader, Phase phase,
                           Axis x, Range<std::int64_t> range, bool is_time) {
  // The first step of the session and disturbed ones only if there are no others.
  enum Kind { Usual, Disturbed, First, None };
  struct Found {
    std::int64_t unit = 0;
    Kind kind = None;
    bool has_accesses = false;
  };
  std::vector<Found> found;
  for (std::uint32_t i = 0; i < index.steps().size(); ++i) {
    const auto step = reader.step(StepId{i});
    const IndexedStep& indexed = index.steps()[i];
    const std::int64_t first = indexed.first_token, count = indexed.n_tokens;
    if (!step || step->phase != phase) continue;
    Kind kind = Usual;
    if (step->op_ends.empty() || step->timing == Timing::Learned || step->dropped ||
        step->aborted) {
      kind = None;
    } else if (const auto verdict = verdict_of(step->conditions, step->threads); i == 0) {
      kind = First;
    } else if (verdict && *verdict != Verdict::Clean) {
      kind = Disturbed;
    }
    const Range<std::int64_t> all =
        x == Axis::Step ? Range<std::int64_t>{i, i + 1} : Range<std::int64_t>{first, first + count};
    const std::int64_t to = std::min(all.to, range.to);
    std::int64_t from = std::max(all.from, range.from);
    if (x == Axis::Token && phase == Phase::Prompt) from = std::max(from, to - 1);
    for (std::int64_t unit = from; unit < to; ++unit)
      found.push_back({.unit = unit, .kind = kind, .has_accesses = indexed.series != kNone});
  }
  Kind used = None;
  for (const Found& one : found) used = std::min(used, one.kind);
  std::vector<Unit> out;
  for (const Found& one : found)
    out.push_back(
        {.at = one.unit, .counts = is_time ? used != None && one.kind == used : one.has_accesses});
  return out;
}

bool has_phase(const SessionIndex& index, Phase phase) {
  return std::ranges::contains(index.steps(), phase, &IndexedStep::phase);
}

TEST(RowFigures, AreTheMeansAndQuantilesOfSingleStepsAndTokens) {
  std::size_t compared = 0, empty = 0, left_out = 0, prompts = 0;
  for (std::uint64_t seed = 0; seed < 7; ++seed) {
    const auto session = open_session(plausible_session(seed));
    const SessionIndex& index = *session->index;
    const TraceFilter filter{.phase = seed % 3 == 0 ? std::optional(Phase::Prompt) : std::nullopt};
    for (const Axis x : {Axis::Step, Axis::Token}) {
      const auto size =
          static_cast<std::int64_t>(x == Axis::Step ? index.steps().size() : index.extent().tokens);
      for (const Range<std::int64_t> range :
           {Range<std::int64_t>{0, size}, {size / 3, size}, {0, 2}, {1, size - 1}}) {
        for (const Value value : {Value::Time, Value::Touched, Value::Reads}) {
          for (const Axis y : {Axis::Layer, Axis::Tensor, Axis::Expert}) {
            SCOPED_TRACE(std::format("seed {}, {} {} to {}, {} by {}", seed, to_text(x), range.from,
                                     range.to, to_text(value), to_text(y)));
            const RasterQuery query{.x = {.axis = x, .pixels = 2, .range = range},
                                    .y = {.axis = y, .pixels = 4096},
                                    .value = value,
                                    .filter = filter};
            const auto of = raster(index, query);
            ASSERT_TRUE(of.has_value());
            const auto found = row_figures(index, query, *of);
            ASSERT_TRUE(found.has_value());
            const bool is_time = value == Value::Time;
            const auto in = [&](Phase phase) {
              return units_in(index, *session->reader, phase, x, of->x.range, is_time);
            };
            const bool generates = !filter.phase && !in(Phase::Generate).empty();
            if (!generates && in(Phase::Prompt).empty()) continue;
            const Phase phase = generates ? Phase::Generate : Phase::Prompt;
            EXPECT_EQ(found->phase, phase);
            prompts += phase == Phase::Prompt;
            std::uint64_t counted = 0, left = 0;
            std::map<std::int64_t, std::multiset<double>> values;
            for (const Unit& unit : in(phase)) {
              ++(unit.counts ? counted : left);
              if (!unit.counts) continue;
              TraceFilter only_this = filter;
              const Range<std::uint64_t> only{static_cast<std::uint64_t>(unit.at),
                                              static_cast<std::uint64_t>(unit.at) + 1};
              (x == Axis::Step ? only_this.steps : only_this.tokens) = only;
              const auto alone = breakdown(index, {.by = y, .filter = only_this});
              ASSERT_TRUE(alone.has_value());
              std::map<std::int64_t, double> sums;
              for (const BreakdownRow& row : alone->rows) sums[row.key] = row.all.of(value);
              for (const std::int64_t key : of->y.keys)
                if (sums[key] > 0 || !is_time) values[key].insert(sums[key]);
            }
            EXPECT_EQ(found->units, counted);
            EXPECT_EQ(found->left_out, left);
            left_out += left > 0;
            ASSERT_EQ(found->rows.size(), of->y.keys.size());
            for (std::size_t i = 0; i < found->rows.size(); ++i) {
              SCOPED_TRACE(of->y.rows[i]);
              const auto& expected = values[of->y.keys[i]];
              ASSERT_EQ(found->rows[i].has_value(), !expected.empty());
              if (expected.empty()) {
                ++empty;
                continue;
              }
              ++compared;
              double sum = 0;
              for (const double one : expected) sum += one;
              const auto near = [](double one, double other) {
                EXPECT_NEAR(one, other, 1e-9 * std::max(1.0, other));
              };
              near(found->rows[i]->mean, sum / static_cast<double>(expected.size()));
              near(found->rows[i]->p5, naive_quantile(expected, 0.05));
              near(found->rows[i]->median, naive_quantile(expected, 0.5));
              near(found->rows[i]->p95, naive_quantile(expected, 0.95));
            }
            if (::testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 1000u);
  EXPECT_GT(empty, 10u);
  EXPECT_GT(left_out, 10u);
  EXPECT_GT(prompts, 10u);
}

// The map and the tables: one decision.
TEST(RowFigures, HaveTheTimesPerStepOfABreakdown) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed));
    for (const Phase phase : {Phase::Generate, Phase::Prompt}) {
      if (!has_phase(*session->index, phase)) continue;
      const TraceFilter filter{.phase = phase, .op = "MUL_MAT*"};
      const RasterQuery query{.x = {.axis = Axis::Step, .pixels = 1},
                              .y = {.axis = Axis::Tensor, .pixels = 4096},
                              .value = Value::Time,
                              .filter = filter};
      const auto of = raster(*session->index, query);
      ASSERT_TRUE(of.has_value());
      const auto found = row_figures(*session->index, query, *of);
      const auto table =
          breakdown(*session->index, {.by = Axis::Tensor, .filter = filter, .step_times = true});
      ASSERT_TRUE(found && table);
      EXPECT_EQ(found->times, table->times);
      std::map<std::int64_t, const BreakdownRow*> rows;
      for (const BreakdownRow& row : table->rows) rows.emplace(row.key, &row);
      for (std::size_t i = 0; i < found->rows.size(); ++i) {
        const auto row = rows.find(of->y.keys[i]);
        const bool has_time = row != rows.end() && row->second->step;
        ASSERT_EQ(found->rows[i].has_value(), has_time) << of->y.rows[i];
        if (!has_time) continue;
        ++compared;
        const Spread& spread = row->second->step->spread;
        EXPECT_EQ(std::llround(found->rows[i]->median), spread.median.v);
        EXPECT_EQ(std::llround(found->rows[i]->p5), spread.p5.v);
        EXPECT_EQ(std::llround(found->rows[i]->p95), spread.p95.v);
      }
    }
  }
  EXPECT_GT(compared, 50u);
}

// A pixel of bytes has the sum of its bytes in each step.
TEST(RowFigures, AreOfThePixelsOfAByteAxis) {
  const auto session = open_session(plausible_session(3));
  const RasterQuery query{.x = {.axis = Axis::Step, .pixels = 1},
                          .y = {.axis = Axis::File, .pixels = 7},
                          .value = Value::BytesRead,
                          .filter = {.phase = Phase::Generate}};
  RasterQuery fine = query;
  fine.x.pixels = 4096;
  const auto of = raster(*session->index, query), all = raster(*session->index, fine);
  ASSERT_TRUE(of && all);
  const auto found = row_figures(*session->index, query, *of);
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->rows.size(), 7u);
  EXPECT_FALSE(found->times.has_value());
  double total = 0;
  for (std::size_t row = 0; row < 7; ++row) {
    std::multiset<double> values;
    for (std::size_t i = 0; i < session->index->steps().size(); ++i) {
      const IndexedStep& step = session->index->steps()[i];
      if (step.phase == Phase::Generate && step.series != kNone)
        values.insert(all->cells[row * all->x.pixels + i]);
    }
    ASSERT_EQ(values.size(), found->units);
    EXPECT_DOUBLE_EQ(found->rows[row]->median, naive_quantile(values, 0.5));
    total += found->rows[row]->median;
  }
  EXPECT_GT(total, 0);
}

TEST(RowFigures, AreCancelled) {
  const auto session = open_session(plausible_session(3));
  const RasterQuery query{.x = {.axis = Axis::Step, .pixels = 1},
                          .y = {.axis = Axis::Layer, .pixels = 9},
                          .value = Value::Touched};
  const auto of = raster(*session->index, query);
  ASSERT_TRUE(of.has_value());
  const auto found = row_figures(*session->index, query, *of, [] { return false; });
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind, TraceError::Kind::Cancelled);
}

}  // namespace
}  // namespace tt::test
