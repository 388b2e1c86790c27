// Compares rasters with a reference implementation that walks every access.
#include "analysis/aggregate/raster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/analysis/aggregate/indexed_session.h"
#include "tests/analysis/aggregate/raster_check.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

TEST(Raster, MatchesReferenceOnRandomSessions) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed));
    Dice dice(seed + 1000);
    for (int i = 0; i < 25; ++i)
      expect_raster(*session->reader, *session->index, random_raster_query(dice, *session->index));
    if (::testing::Test::HasFailure()) return;
  }
}

// More steps than the 8-bit counters of parts can count.
TEST(Raster, PixelCoversManySteps) {
  std::uint32_t with_experts = 0;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed, 700));
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
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed));
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
    const auto session = open_session(with_decreasing_times(plausible_session(seed, 30), seed));
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
    const auto session = open_session(shuffled);
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

}  // namespace
}  // namespace tt::test
