// Caches of the data that the server derives from sessions.
#include "server/sessions/session_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/support/recorded_sessions.h"
#include "tests/server/support/test_server.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

using Times = SessionTotals::Times;

// A running session.
class GrowingSession {
 public:
  explicit GrowingSession(std::filesystem::path file, std::int64_t start_utc_ns = 1)
      : file_(std::move(file)) {
    info_.start_utc_ns = start_utc_ns;
    writer_ = SessionWriter::create(file_, info_).value();
    EXPECT_TRUE(writer_->add_template(TemplateId{1}, small_graph()).has_value());
    const Allocation allocation{.id = AllocationId{1},
                                .graph = TemplateId{1},
                                .addresses = std::vector<std::uint64_t>(12, 4096)};
    EXPECT_TRUE(writer_->add_allocation(allocation).has_value());
    EXPECT_TRUE(writer_->commit().has_value());
  }
  void add(const Step& step) {
    EXPECT_TRUE(writer_->add_step(step).has_value());
    EXPECT_TRUE(writer_->commit().has_value());
  }
  void finish() {
    info_.state = SessionState::Done;
    EXPECT_TRUE(writer_->finish(info_, {}).has_value());
  }
  SessionReader reader() const { return SessionReader::open(file_).value(); }

 private:
  std::filesystem::path file_;
  SessionInfo info_ = SmallSession::small_info();
  std::unique_ptr<SessionWriter> writer_;
};

std::uint64_t steps_of(const SessionTotals& totals) {
  std::uint64_t steps = 0;
  for (const auto& [key, series] : totals.series()) steps += series.steps;
  return steps;
}

TEST(IndexCache, EvictsOldestWhenOverLimit) {
  const SmallSession session({small_step(0), small_step(1)});
  const SessionReader reader = session.reader();
  CacheRoom room(1);
  IndexCache cache(room);
  for (const char* id : {"a", "b", "a"}) {
    const auto handle = cache.get_or_build(id, "tag", reader, never_cancel);
    ASSERT_TRUE(handle.has_value());
    EXPECT_EQ((**handle).steps().size(), 2U);
    EXPECT_EQ(room.stats().entries, 1U) << "only the newest is cached";
  }
}

TEST(IndexCache, IndexIsExtendedWithItsSession) {
  const TempFolder folder;
  GrowingSession session(folder / "s.ttrace");
  const SessionReader reader = session.reader();
  CacheRoom room;
  IndexCache cache(room);
  for (std::uint32_t i = 0; i < 3; ++i) {
    session.add(small_step(i));
    const auto handle = cache.get_or_build("s", std::nullopt, reader, never_cancel);
    ASSERT_TRUE(handle.has_value());
    EXPECT_EQ((**handle).steps().size(), i + 1);
  }
  const auto ended = cache.get_or_build("s", "done", reader, never_cancel);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ((**ended).steps().size(), 3U);
}

TEST(IndexCache, PartialIndexIsDiscardedWhenFileChanges) {
  const SmallSession first({small_step(0), small_step(1), small_step(2)}), next({small_step(0)});
  const SessionReader of_first = first.reader(), of_next = next.reader();
  CacheRoom room;
  IndexCache cache(room);
  int calls = 0;
  ASSERT_FALSE(cache.get_or_build("s", "first", of_first, [&] { return ++calls < 3; }).has_value());
  const auto handle = cache.get_or_build("s", "next", of_next, never_cancel);
  ASSERT_TRUE(handle.has_value());
  EXPECT_EQ((**handle).steps().size(), 1U);
}

TEST(IndexCache, CancelledCallerDoesNotWaitForBuild) {
  const SmallSession session({small_step(0)});
  const SessionReader reader = session.reader();
  CacheRoom room;
  IndexCache cache(room);
  std::latch building(1), release_builder(1);
  std::thread builder([&] {
    const auto handle = cache.get_or_build("s", "tag", reader, [&] {
      building.count_down();
      release_builder.wait();
      return false;
    });
    EXPECT_FALSE(handle.has_value());
  });
  building.wait();
  int calls = 0;
  const auto other = cache.get_or_build("s", "tag", reader, [&] { return ++calls < 3; });
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().kind, TraceError::Kind::Cancelled);
  EXPECT_EQ(calls, 3);
  release_builder.count_down();
  builder.join();
}

TEST(TotalsCache, CachesTotalsWithAndWithoutTimes) {
  const SmallSession session({small_step(0), small_step(1)}), other({small_step(0)});
  const SessionReader reader = session.reader(), of_other = other.reader();
  CacheRoom room;
  TotalsCache cache(room);
  for (const Times times : {Times::Skip, Times::Sum}) {
    const auto built = cache.get_or_build(times, "s", "tag", reader, never_cancel);
    ASSERT_TRUE(built.has_value());
    EXPECT_EQ(steps_of(**built), 2U);
    EXPECT_EQ((*built)->series().begin()->second.op_ns.back(), times == Times::Skip ? 0U : 50U);
    // Nothing is read again: the reader passed here is of another session.
    const auto kept = cache.get_or_build(times, "s", "tag", of_other, never_cancel);
    ASSERT_TRUE(kept.has_value());
    EXPECT_EQ(*kept, *built);
  }
  const auto next = cache.get_or_build(Times::Skip, "s", "next", of_other, never_cancel);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(steps_of(**next), 1U);
}

// Through the server: a session grows, ends and is replaced by another one of the same name.
TEST(TotalsCache, QueriesReflectCurrentSession) {
  TestServer server;
  const std::filesystem::path file = server.folder.path() / "s.ttrace";
  const auto accesses = [&] {
    const char* sql =
        "SELECT sum(accesses), (SELECT sum(executions) FROM op_total) FROM access_by_layer";
    const TestResponse answer =
        server.post("/api/v1/sessions/s/query", json({{"sql", sql}}).dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.body["rows"][0];
  };
  {
    GrowingSession session(file);
    for (std::uint32_t i = 1; i <= 3; ++i) {
      session.add(small_step(i - 1));
      EXPECT_EQ(accesses(), json({16 * i, 5 * i}));
    }
    session.finish();
  }
  EXPECT_EQ(accesses(), json({48, 15})) << "it has ended";
  const std::size_t kept = server.caches.stats().bytes;
  EXPECT_GT(kept, 0U);
  EXPECT_EQ(accesses(), json({48, 15}));
  EXPECT_EQ(server.caches.stats().bytes, kept);
  std::filesystem::remove(file);
  std::filesystem::copy_file(SmallSession({small_step(0), small_step(1)}).path, file);
  EXPECT_EQ(accesses(), json({32, 10}));
  // No request between the end of a session and its replacement.
  for (const std::int64_t start : {2, 3}) {
    std::filesystem::remove(file);
    GrowingSession session(file, start);
    for (std::uint32_t i = 0; i < start; ++i) session.add(small_step(i));
    EXPECT_EQ(accesses(), json({16 * start, 5 * start}));
    session.add(small_step(static_cast<std::uint32_t>(start)));
    session.finish();
  }
  std::filesystem::remove(file);
  GrowingSession last(file, 4);
  last.add(small_step(0));
  last.finish();
  EXPECT_EQ(accesses(), json({16, 5}));
}

// Totals up to the damage are not cached: the next caller must get the damage error, too.
TEST(TotalsCache, DoesNotCacheDamagedSessions) {
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < 2000; ++i) steps.push_back(small_step(i));
  const SmallSession session(steps);
  damage_last_quarter(session.path);
  CacheRoom room;
  TotalsCache cache(room);
  for (int i = 0; i < 2; ++i) {
    SCOPED_TRACE(i);
    SessionReader reader = session.reader();
    const auto whole = cache.get_or_build(Times::Skip, "s", "tag", reader, never_cancel);
    ASSERT_FALSE(whole.has_value());
    EXPECT_EQ(whole.error().kind, TraceError::Kind::Damaged);
    const auto end = reader.truncate_at_damage();
    ASSERT_TRUE(end && *end) << "damaged";
    const auto up_to_damage = cache.get_or_build(Times::Skip, "s", "tag", reader, never_cancel);
    ASSERT_TRUE(up_to_damage.has_value());
    EXPECT_EQ(steps_of(**up_to_damage), **end);
  }
  EXPECT_LT(room.stats().bytes, 10'000U) << "its names, no totals";
}

}  // namespace
}  // namespace tt::test
