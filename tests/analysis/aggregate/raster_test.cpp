// Compares rasters and breakdowns with reference implementations that walk every access.
#include "analysis/aggregate/raster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "analysis/aggregate/breakdown.h"
#include "analysis/weights/sequentiality.h"
#include "tests/analysis/aggregate/raster_check.h"
#include "tests/analysis/aggregate/statistics_check.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/temp_folder.h"
#include "tracer/format/file/sqlite_handle.h"

namespace tt::test {
namespace {

struct Opened {
  TempFolder folder;
  std::unique_ptr<SessionReader> reader;
  std::unique_ptr<SessionIndex> index;
};

std::unique_ptr<Opened> opened(const RandomSession& session) {
  auto out = std::make_unique<Opened>();
  const auto file = out->folder / "s.ttrace";
  EXPECT_TRUE(write_session(file, session).has_value());
  out->reader = std::make_unique<SessionReader>(SessionReader::open(file).value());
  auto index = SessionIndex::build(*out->reader);
  EXPECT_TRUE(index.has_value());
  out->index = std::make_unique<SessionIndex>(*std::move(index));
  return out;
}

TEST(Raster, MatchesReferenceOnRandomSessions) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(plausible_session(seed));
    Dice dice(seed + 1000);
    for (int i = 0; i < 25; ++i)
      expect_raster(*session->reader, *session->index, random_raster_query(dice, *session->index));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(SessionStatistics, MatchReference) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(plausible_session(seed));
    const auto expect = [&](const StatisticsQuery& query) {
      expect_statistics(*session->reader, *session->index, query);
    };
    expect({});
    const std::uint64_t steps = session->index->steps().size();
    Dice dice(seed);
    for (int i = 0; i < 5; ++i)
      expect({.steps = {dice.below(steps), dice.below(steps + 2)},
              .layer = LayerId{static_cast<std::int32_t>(dice.below(3)) - 1}});
    if (::testing::Test::HasFailure()) return;
  }
}

// More steps than the 8-bit counters of parts can count.
TEST(Raster, PixelCoversManySteps) {
  std::uint32_t with_experts = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(plausible_session(seed, 700));
    const auto& series = session->index->series();
    with_experts += std::ranges::any_of(
        series, [](const Series& s) { return s.steps.size() > 255 && s.outline->words > 0; });
    for (const Axis axis : {Axis::Expert, Axis::File, Axis::Buffer})
      for (const Value value : {Value::Touched, Value::Accesses})
        expect_raster(*session->reader, *session->index,
                      {.x = {.axis = Axis::Step, .pixels = 2},
                       .y = {.axis = axis, .pixels = 60},
                       .value = value});
    expect_breakdown(*session->reader, *session->index, Axis::Expert, {});
  }
  EXPECT_GE(with_experts, 1U);
}

// Op counts and times divided among experts and bytes of files and buffers, over all steps and
// over ranges that begin and end within steps.
TEST(Raster, DividesOpTimeAmongParts) {
  for (std::uint64_t seed = 0; seed < 7; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(plausible_session(seed));
    Dice dice(seed);
    expect_part_shares(*session->reader, *session->index, {});
    for (int i = 0; i < 2; ++i)
      expect_part_shares(*session->reader, *session->index,
                         random_range_filter(dice, *session->index));
    if (::testing::Test::HasFailure()) return;
  }
}

// Op tables report a negative duration for such an op; sums use the same value.
TEST(Raster, AcceptsDecreasingTimes) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(with_decreasing_times(plausible_session(seed, 30), seed));
    Dice dice(seed);
    for (const Axis by : {Axis::OpKind, Axis::Expert, Axis::Step, Axis::Tensor})
      expect_breakdown(*session->reader, *session->index, by);
    expect_part_shares(*session->reader, *session->index,
                       random_range_filter(dice, *session->index));
    for (int i = 0; i < 15; ++i) {
      RasterQuery query = random_raster_query(dice, *session->index);
      query.value = Value::Time;
      expect_raster(*session->reader, *session->index, query);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// No recorder writes unordered steps, but other programs can. Each step is added separately.
TEST(Raster, AcceptsUnorderedSteps) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    RandomSession shuffled = plausible_session(seed, 20);
    for (std::size_t i = 0; i + 1 < shuffled.steps.size(); i += 2)
      std::swap(shuffled.steps[i], shuffled.steps[i + 1]);
    for (std::uint32_t i = 0; i < shuffled.steps.size(); ++i) shuffled.steps[i].id = StepId{i};
    const auto session = opened(shuffled);
    ASSERT_FALSE(session->index->in_time_order());
    Dice dice(seed);
    expect_part_shares(*session->reader, *session->index,
                       random_range_filter(dice, *session->index));
    for (int i = 0; i < 10; ++i)
      expect_raster(*session->reader, *session->index, random_raster_query(dice, *session->index));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Raster, EveryPairOfAxesMatchesReference) {
  const SmallSession small({small_step(0), small_step(1), small_step(2)});
  const SessionReader reader = small.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  for (int x = 0; x <= static_cast<int>(Axis::All); ++x) {
    for (int y = 0; y <= static_cast<int>(Axis::All); ++y) {
      if (is_temporal(static_cast<Axis>(x)) && is_temporal(static_cast<Axis>(y))) continue;
      // All of its steps have the same time.
      for (const Value value : {Value::Touched, Value::Accesses})
        expect_raster(reader, *index,
                      {.x = {.axis = static_cast<Axis>(x), .pixels = 7},
                       .y = {.axis = static_cast<Axis>(y), .pixels = 5},
                       .value = value});
    }
  }
}

TEST(Raster, SpreadsPromptEvenlyOverItsTokens) {
  const SmallSession small({small_step(0)});
  const SessionReader reader = small.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  const auto found = raster(*index, {.x = {.axis = Axis::Token, .pixels = 100},
                                     .y = {.axis = Axis::Layer, .pixels = 100},
                                     .value = Value::Time});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->x.pixels, 2U);
  EXPECT_EQ(found->y.rows, (std::vector<std::string>{"0", "1", "none"}));
  EXPECT_EQ(found->cells, (std::vector<double>{25, 25, 20, 20, 30, 30}));
  EXPECT_EQ(found->total, 150);
}

TEST(SessionIndex, CanBeExtended) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    RandomSession whole = plausible_session(seed, 50);
    const TempFolder folder;
    auto writer = SessionWriter::create(folder / "s.ttrace", whole.info);
    ASSERT_TRUE(writer.has_value());
    RandomSession part = whole;
    part.steps.resize(21);
    ASSERT_TRUE(add_all(**writer, part).has_value());
    const auto reader = SessionReader::open(folder / "s.ttrace");
    ASSERT_TRUE(reader.has_value());
    auto index = SessionIndex::build(*reader);
    ASSERT_TRUE(index.has_value());
    EXPECT_EQ(index->steps().size(), 21U);
    for (std::size_t i = 21; i < whole.steps.size(); ++i)
      ASSERT_TRUE((*writer)->add_step(whole.steps[i]).has_value());
    ASSERT_TRUE((*writer)->commit().has_value());
    ASSERT_TRUE(index->extend(*reader).has_value());
    EXPECT_EQ(index->steps().size(), 50U);
    Dice dice(seed);
    for (int i = 0; i < 10; ++i) expect_raster(*reader, *index, random_raster_query(dice, *index));
  }
}

// Any file contents: queries succeed and count the same number of accesses.
TEST(SessionIndex, AcceptsAnySession) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(random_session(seed));
    double accesses = 0;
    const auto read = session->reader->for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
      if (step.graph.v == 0) return true;
      const auto graph = session->reader->graph(step.graph).value();
      for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
        accesses += access.touched.v != 0 || access.expert >= 0;
      });
      return true;
    });
    ASSERT_TRUE(read.has_value());
    for (int x = 0; x <= static_cast<int>(Axis::All); ++x) {
      const auto found = raster(*session->index, {.x = {.axis = static_cast<Axis>(x), .pixels = 40},
                                                  .y = {.axis = Axis::Op, .pixels = 30},
                                                  .value = Value::Accesses});
      ASSERT_TRUE(found.has_value());
    }
    const auto total = raster(*session->index, {.x = {.axis = Axis::All, .pixels = 1},
                                                .y = {.axis = Axis::All, .pixels = 1},
                                                .value = Value::Accesses});
    ASSERT_TRUE(total.has_value());
    EXPECT_GE(total->total, accesses);
  }
}

TEST(SessionIndex, SkipsAndReportsDamagedSteps) {
  const SmallSession small({small_step(0), small_step(1), small_step(2)});
  {
    auto db = Database::open(small.path, Database::Mode::ReadWrite);
    ASSERT_TRUE(db.has_value());
    ASSERT_TRUE(db->run("UPDATE tt_step SET crc = crc + 1 WHERE id = 1").has_value());
  }
  const SessionReader reader = small.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->damaged(), std::vector<StepId>{StepId{1}});
  const auto found = raster(*index, {.x = {.axis = Axis::Step, .pixels = 10},
                                     .y = {.axis = Axis::All, .pixels = 1},
                                     .value = Value::Time});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->cells, (std::vector<double>{150, 0, 150}));
  EXPECT_EQ(found->damaged_steps, 1U);
}

TEST(SessionIndex, BuildCanBeCancelled) {
  const SmallSession small({small_step(0), small_step(1), small_step(2)});
  const SessionReader reader = small.reader();
  int checks = 0;
  const auto index = SessionIndex::build(reader, [&] { return ++checks < 2; });
  ASSERT_FALSE(index.has_value());
  EXPECT_EQ(index.error().kind, TraceError::Kind::Cancelled);
}

TEST(SessionIndex, StoresTotalsOfEachStep) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(plausible_session(seed));
    const auto read = session->reader->for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
      const IndexedStep& known = session->index->steps()[step.id.v];
      AccessTotals totals;
      if (step.graph.v != 0) {
        const auto graph = session->reader->graph(step.graph).value();
        totals = totals_of(*graph, accesses_of(*graph), step);
      }
      EXPECT_EQ(known.totals.accesses, totals.accesses);
      EXPECT_EQ(known.totals.read, totals.read);
      EXPECT_EQ(known.totals.written, totals.written);
      return true;
    });
    ASSERT_TRUE(read.has_value());
    EXPECT_TRUE(session->index->damaged().empty());
  }
}

TEST(Breakdown, FilteredRowsMatchReference) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(plausible_session(seed));
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
    const auto session = opened(plausible_session(seed));
    TraceSums total;
    for (const IndexedStep& step : session->index->steps()) {
      total.bytes_read += static_cast<double>(step.totals.read.v);
      total.bytes_written += static_cast<double>(step.totals.written.v);
      total.time_ns += static_cast<double>(step.op_ns);
    }
    for (const Axis by : {Axis::Step, Axis::Token, Axis::Layer, Axis::Component, Axis::OpKind,
                          Axis::Op, Axis::Phase, Axis::Tensor, Axis::Source, Axis::All}) {
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
    const auto session = opened(plausible_session(seed, 25));
    for (int by = static_cast<int>(Axis::Step); by <= static_cast<int>(Axis::All); ++by) {
      if (is_byte_axis(static_cast<Axis>(by))) continue;
      TraceFilter filter;
      if (by % 3 == 1) filter.layers = {LayerId{0}};
      if (by % 5 == 1) filter.kind = TensorKind::Weight;
      expect_breakdown(*session->reader, *session->index, static_cast<Axis>(by), filter);
    }
    for (const Axis by : {Axis::Tensor, Axis::Layer, Axis::OpKind})
      expect_hot_cold(*session->index, {.by = by, .value = Value::Touched, .hot_share = 0.2});
  }
}

TEST(Breakdown, DefaultSharesAre10PercentHotAnd50PercentCold) {
  const auto session = opened(plausible_session(3));
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
  const auto session = opened(plausible_session(3, 110));
  std::set<std::size_t> sizes;
  for (std::uint64_t steps = 100; steps <= 110; ++steps) {
    TraceFilter filter;
    filter.steps = {0, steps};
    for (std::size_t percent = 0; percent <= 100; ++percent) {
      const double share = static_cast<double>(percent) / 100;
      for (const bool hot : {true, false}) {
        const auto found = hot_cold(*session->index, {.by = Axis::Step,
                                                      .hot_share = hot ? share : 0,
                                                      .cold_share = hot ? 0 : share,
                                                      .filter = filter});
        ASSERT_TRUE(found.has_value());
        const std::size_t n = found->rows.size();
        sizes.insert(n);
        const auto& of = found->classes[std::to_underlying(hot ? Heat::Hot : Heat::Cold)];
        ASSERT_EQ(of.rows, hot ? (n * percent + 99) / 100 : n * percent / 100)
            << percent << " % of " << n;
      }
    }
  }
  EXPECT_TRUE(sizes.contains(100));
}

TEST(Sequentiality, MatchesReference) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(plausible_session(seed));
    const std::uint64_t gap = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 100 : kDefaultGap;
    TraceFilter filter;
    if (seed % 4 == 1) filter.phase = Phase::Generate;
    if (seed % 5 == 1) filter.layers = {LayerId{0}};
    expect_read_order(*session->reader, *session->index, filter, gap);
  }
}

}  // namespace
}  // namespace tt::test
