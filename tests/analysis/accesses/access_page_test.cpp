#include <gtest/gtest.h>

#include <set>

#include "analysis/accesses/access_table.h"
#include "tests/analysis/accesses/access_check.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/sessions/small_session.h"
#include "tracer/format/file/sqlite_handle.h"

namespace tt {
namespace {

using test::small_step;
using test::SmallSession;

TEST(AccessPage, MatchesReferenceOnRandomSessions) {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const test::TempFolder folder;
    const auto path = folder.path() / "random.ttrace";
    ASSERT_TRUE(test::write_session(path, test::random_session(seed)).has_value());
    const auto reader = SessionReader::open(path);
    ASSERT_TRUE(reader.has_value()) << reader.error().message;
    compared += test::expect_accesses(*reader, seed, 6);
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 10'000u);
}

// Sessions long enough to skip steps: experts in one 64-bit word, in two, and too many for the
// index; rows of an embedding; caches. Selective filters, from any row, in both directions.
TEST(AccessPage, SkipsStepsWithoutMatches) {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    const test::TempFolder folder;
    const auto path = folder.path() / "plausible.ttrace";
    ASSERT_TRUE(test::write_session(path, test::plausible_session(seed, 400)).has_value());
    const auto reader = SessionReader::open(path);
    ASSERT_TRUE(reader.has_value()) << reader.error().message;
    compared += test::expect_accesses(*reader, seed, 4);
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 10'000u);
}

std::vector<Step> steps(std::uint32_t count) {
  std::vector<Step> out;
  for (std::uint32_t i = 0; i < count; ++i) out.push_back(small_step(i));
  return out;
}

constexpr std::uint32_t kRowsPerStep = 16;

TEST(AccessPage, TimeOrderDerivesOnlyStepsOnThePage) {
  const SmallSession session(steps(2000));
  const SessionReader reader = session.reader();
  for (const bool descending : {false, true}) {
    SCOPED_TRACE(descending);
    const AccessQuery query{.order = {AccessSort::ByTime, descending}};
    const auto first = access_page(reader, query, std::nullopt, 40);
    ASSERT_TRUE(first.has_value());
    EXPECT_LE(first->steps_derived, 3u);
    // 40 rows deep in the session need the steps of the page, the step of the cursor and one step
    // for the next cursor.
    const auto deep = access_page(reader, query, AccessId{.step = StepId{1500}}, 40);
    ASSERT_TRUE(deep.has_value()) << deep.error().message;
    EXPECT_EQ(deep->rows.size(), 40u);
    EXPECT_LE(deep->steps_derived, 5u);
  }
}

TEST(AccessPage, DerivesNoStepWhenNothingCanMatch) {
  const SmallSession session(steps(100));
  const SessionReader reader = session.reader();
  for (const auto by : {AccessSort::ByTime, AccessSort::ByBytes}) {
    const AccessQuery query{.filter = {.tensor = {.name = "no such tensor"}}, .order = {by}};
    const auto page = access_page(reader, query, std::nullopt, 40);
    ASSERT_TRUE(page.has_value());
    EXPECT_TRUE(page->rows.empty());
    EXPECT_FALSE(page->next.has_value());
    EXPECT_EQ(page->steps_derived, 0u);
  }
}

// One of many steps has matching rows; or none has, although the template has such accesses.
TEST(AccessPage, IndexSkipsStepsWithoutMatches) {
  std::vector<Step> many = steps(2000);
  for (Step& step : many) {
    if (step.id.v != 1500) step.slots = {SlotValues{.ints = {99}, .floats = {}}};
  }
  const SmallSession session(many);
  const SessionReader reader = session.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  AccessQuery query{.filter = {.tensor = {.name = "token_embd"}}};
  for (const bool descending : {false, true}) {
    for (const auto by : {AccessSort::ByTime, AccessSort::ByOffset}) {
      query.order = {by, descending};
      const auto page =
          access_page(reader, query, std::nullopt, 40, never_cancel, [&] { return &*index; });
      ASSERT_TRUE(page.has_value());
      EXPECT_EQ(page->rows.size(), 2u);
      EXPECT_FALSE(page->next.has_value());
      EXPECT_LE(page->steps_read, kMaxReadsWithoutMatch + 1);
    }
  }
  query.last_step = StepId{1499};
  int checks = 0;
  const auto none = access_page(reader, query, std::nullopt, 40, never_cancel, [&] {
    ++checks;
    return &*index;
  });
  ASSERT_TRUE(none.has_value());
  EXPECT_TRUE(none->rows.empty());
  EXPECT_EQ(checks, 1);
}

// All steps have matching rows: a page after a cursor reads only the steps on it.
TEST(AccessPage, IndexReadsOnlyStepsOnThePage) {
  const SmallSession session(steps(2000));
  const SessionReader reader = session.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  for (const auto by : {AccessSort::ByBytes, AccessSort::ByOffset, AccessSort::ByTensor}) {
    for (const bool descending : {false, true}) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(by) << (descending ? " down" : " up"));
      for (std::uint32_t access = 0; access < kRowsPerStep - 1; ++access) {
        const AccessId after{.step = StepId{1000}, .access = access};
        const auto page = access_page(reader, {.order = {by, descending}}, after, 30, never_cancel,
                                      [&] { return &*index; });
        ASSERT_TRUE(page.has_value()) << page.error().message;
        EXPECT_LE(page->steps_read, 70U);
      }
    }
  }
}

TEST(AccessPage, StopsWithoutIndexWhenNoTemplateMatches) {
  const SmallSession session(steps(2000));
  const auto page = access_page(
      session.reader(), {.filter = {.tensor = {.name = "no such tensor"}}}, std::nullopt, 40);
  ASSERT_TRUE(page.has_value());
  EXPECT_TRUE(page->rows.empty());
  EXPECT_EQ(page->steps_read, kMaxReadsWithoutMatch);
}

// The session has grown since the index was built: steps that are not in the index are read.
TEST(AccessPage, AcceptsOutdatedIndex) {
  const test::TempFolder folder;
  const auto path = folder.path() / "running.ttrace";
  test::RandomSession whole = test::plausible_session(5, 400), part = whole;
  auto writer = SessionWriter::create(path, whole.info);
  ASSERT_TRUE(writer.has_value()) << writer.error().message;
  part.steps.resize(210);
  ASSERT_TRUE(test::add_all(**writer, part).has_value());
  const auto reader = SessionReader::open(path);
  ASSERT_TRUE(reader.has_value());
  const auto index = SessionIndex::build(*reader);
  ASSERT_TRUE(index.has_value());
  for (std::size_t i = 210; i < whole.steps.size(); ++i)
    ASSERT_TRUE((*writer)->add_step(whole.steps[i]).has_value());
  ASSERT_TRUE((*writer)->commit().has_value());
  for (const bool descending : {false, true}) {
    for (const std::uint32_t op : {0u, 5u, 1000u}) {
      const AccessQuery query{.phase = Phase::Other,
                              .filter = {.op = OpId{op}},
                              .order = {AccessSort::ByTime, descending}};
      const auto with =
          access_page(*reader, query, std::nullopt, 10'000, never_cancel, [&] { return &*index; });
      const auto without = access_page(*reader, query, std::nullopt, 10'000);
      ASSERT_TRUE(with.has_value() && without.has_value());
      EXPECT_EQ(with->rows.empty(), op == 1000);
      ASSERT_EQ(with->rows.size(), without->rows.size());
      for (std::size_t i = 0; i < with->rows.size(); ++i)
        EXPECT_EQ(with->rows[i].place, without->rows[i].place);
    }
  }
}

// A damaged step may have had matching rows: the page is an error, not incomplete.
TEST(AccessPage, DamagedStepIsAnError) {
  const SmallSession session(steps(400));
  {
    auto db = Database::open(session.path, Database::Mode::ReadWrite);
    ASSERT_TRUE(db.has_value());
    ASSERT_TRUE(db->run("UPDATE tt_step SET crc = crc + 1 WHERE id = 300").has_value());
  }
  const SessionReader reader = session.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  for (const SessionIndex* known : {&*index, static_cast<const SessionIndex*>(nullptr)}) {
    AccessQuery query{.phase = Phase::Prompt};  // step 0
    const auto page =
        access_page(reader, query, std::nullopt, 40, never_cancel, [&] { return known; });
    ASSERT_FALSE(page.has_value());
    EXPECT_EQ(page.error().kind, TraceError::Kind::Damaged);
    query.last_step = StepId{299};
    const auto before =
        access_page(reader, query, std::nullopt, 40, never_cancel, [&] { return known; });
    ASSERT_TRUE(before.has_value());
    EXPECT_EQ(before->rows.size(), kRowsPerStep);
  }
}

TEST(AccessPage, CanBeCancelled) {
  const SmallSession session(steps(100));
  const SessionReader reader = session.reader();
  for (const auto by : {AccessSort::ByTime, AccessSort::ByBytes}) {
    int checks = 0;
    const auto page =
        access_page(reader, {.order = {by}}, std::nullopt, 10'000, [&] { return ++checks < 10; });
    ASSERT_FALSE(page.has_value());
    EXPECT_EQ(page.error().kind, TraceError::Kind::Cancelled);
    EXPECT_EQ(checks, 10);
  }
}

TEST(AccessPage, UnknownCursorIsNotFound) {
  const SmallSession session(steps(2));
  const SessionReader reader = session.reader();
  for (const AccessId place :
       {AccessId{.step = StepId{7}}, AccessId{.step = StepId{0}, .access = 99},
        AccessId{.step = StepId{0}, .access = 2, .part = 5}}) {
    const auto page = access_page(reader, {}, place, 10);
    ASSERT_FALSE(page.has_value());
    EXPECT_EQ(page.error().kind, TraceError::Kind::NotFound);
  }
}

TEST(AccessPage, LimitZeroIsEmpty) {
  const SmallSession session(steps(2));
  const auto page = access_page(session.reader(), {}, std::nullopt, 0);
  ASSERT_TRUE(page.has_value());
  EXPECT_TRUE(page->rows.empty());
  EXPECT_FALSE(page->next.has_value());
}

// The session is being recorded: steps are added while a client reads pages.
TEST(AccessPage, PagingReturnsEachRowOnceWhileTheSessionGrows) {
  for (const auto by :
       {AccessSort::ByTime, AccessSort::ByBytes, AccessSort::ByOffset, AccessSort::ByTensor}) {
    for (const bool descending : {false, true}) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(by) << (descending ? " down" : " up"));
      const test::TempFolder folder;
      const auto path = folder.path() / "running.ttrace";
      auto writer = SessionWriter::create(path, SmallSession::small_info());
      ASSERT_TRUE(writer.has_value()) << writer.error().message;
      ASSERT_TRUE((*writer)->add_template(TemplateId{1}, test::small_graph()).has_value());
      Allocation allocation{.id = AllocationId{1}, .graph = TemplateId{1}, .addresses = {}};
      allocation.addresses.resize(test::small_graph().tensors.size());
      ASSERT_TRUE((*writer)->add_allocation(allocation).has_value());
      std::uint32_t written = 0;
      const auto add = [&] {
        EXPECT_TRUE((*writer)->add_step(small_step(written++)).has_value());
        EXPECT_TRUE((*writer)->commit().has_value());
      };
      for (int i = 0; i < 5; ++i) add();
      const auto reader = SessionReader::open(path);
      ASSERT_TRUE(reader.has_value()) << reader.error().message;

      std::set<AccessId> seen;
      std::optional<AccessId> after;
      do {
        const auto page = access_page(*reader, {.order = {by, descending}}, after, 7);
        ASSERT_TRUE(page.has_value()) << page.error().message;
        for (const AccessRow& row : page->rows)
          EXPECT_TRUE(seen.insert(row.place).second) << "duplicate in step " << row.place.step.v;
        after = page->next;
        if (written < 12) add();
      } while (after);
      std::uint32_t old = 0;
      for (const AccessId& place : seen) old += place.step.v < 5;
      EXPECT_EQ(old, 5 * kRowsPerStep);
      if (by == AccessSort::ByTime) {
        EXPECT_EQ(seen.size(), (descending ? 5 : 12) * kRowsPerStep);
      }
    }
  }
}

}  // namespace
}  // namespace tt
