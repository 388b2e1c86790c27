#include "analysis/index/session_index.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/aggregate/raster.h"
#include "tests/analysis/aggregate/indexed_session.h"
#include "tests/analysis/aggregate/raster_check.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/temp_folder.h"
#include "tracer/format/file/session_writer.h"
#include "tracer/format/file/sqlite_handle.h"

namespace tt::test {
namespace {

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
    const auto session = open_session(random_session(seed));
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
    const auto session = open_session(plausible_session(seed));
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

}  // namespace
}  // namespace tt::test
