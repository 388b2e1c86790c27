// Compares breakdowns with a reference implementation that walks every access.
#include "analysis/aggregate/breakdown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <format>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tests/analysis/aggregate/indexed_session.h"
#include "tests/analysis/aggregate/raster_check.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

TEST(Breakdown, FilteredRowsMatchReference) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed));
    Dice dice(seed + 2000);
    const auto expect = [&](Axis by, const TraceFilter& filter) {
      expect_breakdown(*session->reader, *session->index, by, filter);
    };
    for (int i = 0; i < 3; ++i) {
      Axis by = dice.word(Axis::All);
      while (by == Axis::Time || is_byte_axis(by)) by = dice.word(Axis::All);
      expect(by, random_raster_query(dice, *session->index).filter);
    }
    expect(Axis::Token, {});
    expect(Axis::Step, {});
    if (::testing::Test::HasFailure()) return;
  }
}

// Only a crafted file has such a step. Must not allocate a row per token.
TEST(Breakdown, RejectsStepWithTooManyTokens) {
  Step step = small_step(0);
  step.n_tokens = 4'000'000'000;
  const SmallSession small({step});
  const SessionReader reader = small.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  EXPECT_FALSE(breakdown(*index, {.by = Axis::Token}).has_value());
  EXPECT_EQ(breakdown(*index, {.by = Axis::Step})->rows.size(), 1U);
}

TEST(Breakdown, RowsAddUpToTheTotalOnEveryAxis) {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed));
    TraceSums total;
    for (const IndexedStep& step : session->index->steps()) {
      total.bytes_read += static_cast<double>(step.totals.read.v);
      total.bytes_written += static_cast<double>(step.totals.written.v);
      total.time_ns += static_cast<double>(step.op_ns);
    }
    for (const Axis by :
         {Axis::Step, Axis::Token, Axis::Layer, Axis::Component, Axis::OpKind, Axis::Op,
          Axis::Kernel, Axis::Phase, Axis::Tensor, Axis::Source, Axis::Type, Axis::All}) {
      SCOPED_TRACE(to_text(by));
      const auto found = breakdown(*session->index, {.by = by});
      ASSERT_TRUE(found.has_value());
      TraceSums sum, prompt;
      for (const BreakdownRow& row : found->rows) {
        sum += row.all;
        prompt += row.prompt;
      }
      const double tolerance = 1e-9 * std::max(1.0, total.bytes());
      EXPECT_NEAR(sum.bytes_read, total.bytes_read, tolerance);
      EXPECT_NEAR(sum.bytes_written, total.bytes_written, tolerance);
      EXPECT_NEAR(sum.time_ns, total.time_ns, tolerance);
      EXPECT_NEAR(found->total.all.bytes(), total.bytes(), tolerance);
      EXPECT_NEAR(prompt.bytes(), found->total.prompt.bytes(), tolerance);
      EXPECT_NEAR(found->disk.bytes() + found->buffer.bytes(), total.bytes(), tolerance);
    }
  }
}

TEST(Breakdown, RowsMatchReferenceOnEveryAxis) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed, 25));
    for (int by = static_cast<int>(Axis::Step); by <= static_cast<int>(Axis::All); ++by) {
      if (is_byte_axis(static_cast<Axis>(by))) continue;
      TraceFilter filter;
      if (by % 3 == 1) filter.layers = {LayerId{0}};
      if (by % 5 == 1) filter.kind = TensorKind::Weight;
      expect_breakdown(*session->reader, *session->index, static_cast<Axis>(by), filter);
    }
    for (const Axis by : {Axis::Tensor, Axis::Layer, Axis::OpKind})
      for (const auto value : {std::optional<Value>(), {Value::Touched}, {Value::Accesses}})
        expect_hot_cold(*session->index, {.by = by, .value = value, .hot_share = 0.2});
  }
}

// Two steps read the same 5 weights, each once, except two rows of the embedding.
TEST(Breakdown, RowsWithEqualValuesAreNotDivided) {
  Step later = small_step(1);
  const SmallSession small({small_step(0), later});
  const SessionReader reader = small.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  const TraceFilter weights{.kind = TensorKind::Weight};
  const auto by_accesses = hot_cold(*index, {.value = Value::Reads, .filter = weights});
  const auto chosen = hot_cold(*index, {.filter = weights});
  ASSERT_TRUE(by_accesses && chosen);
  std::string table;
  for (const HotCold::Row& row : by_accesses->rows)
    table += std::format("{} {} {}\n", row.row.name, row.row.all.reads, to_text(row.heat));
  table += by_accesses->note + "\n\n";
  for (const HotCold::Row& row : chosen->rows)
    table += std::format("{} {} {}\n", row.row.name, row.row.all.bytes(), to_text(row.heat));
  table += chosen->note + "\n";
  EXPECT_EQ(table,
            "token_embd.weight 4 hot\n"
            "blk.0.attn_norm.weight 2 warm\n"
            "blk.0.attn_q.weight 2 warm\n"
            "blk.1.ffn_down.weight 2 warm\n"
            "output.weight 2 warm\n"
            "The limit of cold (50 %) would divide 4 rows with equal reads: they are warm.\n\n"
            "output.weight 1024 hot\n"
            "blk.0.attn_q.weight 512 warm\n"
            "blk.1.ffn_down.weight 512 warm\n"
            "token_embd.weight 128 cold\n"
            "blk.0.attn_norm.weight 64 cold\n"
            "4 of 5 rows have equally many accesses: sorted by bytes.\n");
}

TEST(Breakdown, DefaultSharesAre10PercentHotAnd50PercentCold) {
  const auto session = open_session(plausible_session(3));
  const auto found = hot_cold(*session->index, {.value = Value::Touched});
  ASSERT_TRUE(found.has_value());
  const std::size_t n = found->rows.size();
  ASSERT_GT(n, 10U);
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0) {
      EXPECT_LE(found->rows[i].row.all.bytes(), found->rows[i - 1].row.all.bytes());
    }
    EXPECT_EQ(found->rows[i].heat, i < (n + 9) / 10 ? Heat::Hot
                                   : i >= n - n / 2 ? Heat::Cold
                                                    : Heat::Warm);
  }
  for (const auto& of : found->classes) rows += of.rows;
  EXPECT_EQ(rows, n);
}

// In floating point 0.07 * 100 is slightly above 7 and 0.29 * 100 slightly below 29.
TEST(Breakdown, HotAndColdRowCountsAreExact) {
  const auto session = open_session(plausible_session(3, 110));
  std::set<std::size_t> sizes;
  std::size_t exact = 0;
  for (std::uint64_t steps = 100; steps <= 110; ++steps) {
    TraceFilter filter;
    filter.steps = {0, steps};
    for (std::size_t percent = 0; percent <= 100; ++percent) {
      const double share = static_cast<double>(percent) / 100;
      for (const bool hot : {true, false}) {
        const auto found = hot_cold(*session->index, {.by = Axis::Step,
                                                      .value = Value::Time,
                                                      .hot_share = hot ? share : 0,
                                                      .cold_share = hot ? 0 : share,
                                                      .filter = filter});
        ASSERT_TRUE(found.has_value());
        const std::size_t n = found->rows.size();
        sizes.insert(n);
        const auto& of = found->classes[std::to_underlying(hot ? Heat::Hot : Heat::Cold)];
        const std::size_t count = hot ? (n * percent + 99) / 100 : n * percent / 100;
        const std::size_t limit = hot ? count : n - count;  // the first row after the boundary
        const auto time = [&](std::size_t i) { return found->rows[i].row.all.time_ns; };
        if (limit > 0 && limit < n && time(limit - 1) == time(limit)) {
          ASSERT_LT(of.rows, count) << percent << " % of " << n;
          continue;
        }
        ++exact;
        ASSERT_EQ(of.rows, count) << percent << " % of " << n;
      }
    }
  }
  EXPECT_GT(exact, 1500U);
  EXPECT_TRUE(sizes.contains(100));
}

}  // namespace
}  // namespace tt::test
