// Retention, and behavior without free space: on small files with a simulated clock, on an
// 8 MiB disk, and in a read-only folder.
#include "server/sessions/retention.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/server/support/recorded_sessions.h"
#include "tests/support/read_only_folder.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/small_disk.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_edit.h"

namespace tt::test {
namespace {

using KeptIds = std::vector<std::string>;

// A data folder with sessions of given ages.
struct RetentionFolder {
  static constexpr std::int64_t kNow = 1'800'000'000'000'000'000;

  void add(const std::string& id, std::chrono::hours age, std::uint32_t steps = 1) {
    std::vector<Step> all;
    for (std::uint32_t i = 0; i < steps; ++i) all.push_back(small_step(i));
    const SmallSession session(all);
    const fs::path file = folder.path() / (id + ".ttrace");
    fs::copy_file(session.path, file);
    ASSERT_TRUE(rename_session(file, id).has_value());
    const std::chrono::sys_time<std::chrono::nanoseconds> then(std::chrono::nanoseconds(kNow) -
                                                               std::chrono::nanoseconds(age));
    fs::last_write_time(file, std::chrono::file_clock::from_sys(then));
    bytes = fs::file_size(file);
  }
  Retention retention(const RetentionOptions& options) {
    return Retention(
        store, options,
        [this](const RemovedSession& session) {
          removed.push_back(session.id);
          EXPECT_EQ(session.bytes, bytes);
          EXPECT_FALSE(session.reason.empty());
        },
        [this] { return now; });
  }
  KeptIds remaining() const {
    KeptIds ids;
    for (const std::string& file : list_files(folder.path()))
      if (file.ends_with(".ttrace") && !file.starts_with("."))
        ids.push_back(file.substr(0, file.size() - 7));
    return ids;
  }

  TempFolder folder;
  std::int64_t now = kNow;
  SessionStore store{folder.path(), {}, [this] { return now; }};
  KeptIds removed;
  std::uint64_t bytes = 0;  // size of one session
};

using std::chrono::hours;

TEST(Retention, KeepsEverythingByDefault) {
  RetentionFolder folder;
  folder.add("old", hours(24 * 3650));
  folder.add("new", hours(0));
  auto retention = folder.retention({.max_age = {}, .keep_bytes = {}, .disk_reserve = 0});
  retention.sweep();
  EXPECT_EQ(folder.remaining(), (KeptIds{"new", "old"}));
  EXPECT_EQ(retention.room().data_bytes, 2 * folder.bytes);
  EXPECT_FALSE(retention.check_session_space());
}

TEST(Retention, DeletesExpiredSessionsOldestFirst) {
  RetentionFolder folder;
  folder.add("a", hours(49));
  folder.add("b", hours(100));
  folder.add("c", hours(47));
  folder.add("d", -hours(1000));  // the clock was set back
  auto retention = folder.retention({.max_age = hours(48), .keep_bytes = {}, .disk_reserve = 0});
  retention.sweep();
  EXPECT_EQ(folder.removed, (KeptIds{"b", "a"}));
  EXPECT_EQ(folder.remaining(), (KeptIds{"c", "d"}));
  folder.now += std::chrono::nanoseconds(hours(2)).count();
  retention.sweep();
  EXPECT_EQ(folder.remaining(), (KeptIds{"d"}));
  folder.now = 0;  // long before all sessions
  retention.sweep();
  EXPECT_EQ(folder.remaining(), (KeptIds{"d"}));
}

TEST(Retention, QuotaPurgesDeletedSessionsThenOldest) {
  RetentionFolder folder;
  for (int i = 0; i < 6; ++i) folder.add(std::string(1, static_cast<char>('a' + i)), hours(10 - i));
  ASSERT_TRUE(folder.store.remove("f").has_value());
  folder.now += 2'000'000'000;
  ASSERT_TRUE(folder.store.remove("e").has_value());
  auto retention = folder.retention(
      {.max_age = {}, .keep_bytes = 2 * folder.bytes + folder.bytes / 2, .disk_reserve = 0});
  EXPECT_EQ(retention.room().data_bytes, 6 * folder.bytes);
  retention.sweep();
  EXPECT_EQ(folder.removed, (KeptIds{"f", "e", "a", "b"}));
  EXPECT_EQ(folder.remaining(), (KeptIds{"c", "d"}));
  EXPECT_FALSE(retention.check_file_size(folder.bytes));
  const auto rejected = retention.check_file_size(3 * folder.bytes);
  ASSERT_TRUE(rejected.has_value());
  EXPECT_EQ(rejected->error_code, ErrorCode::QuotaReached);
  EXPECT_EQ(folder.remaining(), (KeptIds{"c", "d"}));
  // A new session needs about as much as the last ones.
  EXPECT_FALSE(retention.check_session_space());
  EXPECT_EQ(folder.remaining(), (KeptIds{"d"}));
}

// A tenth below the quota, so that not every new session is over it again.
TEST(Retention, QuotaRemovesMoreThanIsOverIt) {
  RetentionFolder folder;
  for (int i = 0; i < 20; ++i) folder.add(std::format("s{:02}", i), hours(40 - i));
  const std::uint64_t quota = 15 * folder.bytes + folder.bytes / 2;
  auto retention = folder.retention({.max_age = {}, .keep_bytes = quota, .disk_reserve = 0});
  retention.sweep();
  EXPECT_EQ(folder.remaining().size(), 13U);
  EXPECT_EQ(folder.remaining().front(), "s07");
}

// What a recording that has just begun will need is room that no new session gets.
TEST(Retention, QuotaLeavesRoomForRunningSessions) {
  RetentionFolder folder;
  for (int i = 0; i < 20; ++i) folder.add(std::format("s{:02}", i), hours(40 - i), 400);
  auto running =
      SessionWriter::create(folder.folder / "running.ttrace", SmallSession::small_info());
  ASSERT_TRUE(running.has_value());
  const std::uint64_t begun = fs::file_size(folder.folder / "running.ttrace");
  ASSERT_LT(begun, folder.bytes);
  const RetentionOptions unlimited{.max_age = {}, .keep_bytes = {}, .disk_reserve = 0};
  const std::uint64_t held = folder.retention(unlimited).room().data_bytes;
  // Room for the new session, and for half of what the running one will still need.
  const std::uint64_t quota = held + folder.bytes + (folder.bytes - begun) / 2;
  auto retention = folder.retention({.max_age = {}, .keep_bytes = quota, .disk_reserve = 0});
  EXPECT_FALSE(retention.check_session_space());
  EXPECT_FALSE(folder.removed.empty());
}

TEST(Retention, KeepsForeignRunningAndUnreadableFiles) {
  RetentionFolder folder;
  folder.add("old", hours(1000));
  const TempFolder outside;
  write_bytes(outside / "x.ttrace", "x");
  const SmallSession elsewhere({small_step(0)});
  fs::copy_file(elsewhere.path, outside / "theirs.ttrace");
  fs::create_symlink(outside / "theirs.ttrace", folder.folder / "link.ttrace");
  write_bytes(folder.folder / "broken.ttrace", "not a database");
  write_bytes(folder.folder / "notes.txt", std::string(100'000, 'x'));
  SessionInfo info = SmallSession::small_info();
  auto running = SessionWriter::create(folder.folder / "running.ttrace", info);
  ASSERT_TRUE(running.has_value());
  auto retention = folder.retention({.max_age = hours(1), .keep_bytes = 1, .disk_reserve = 0});
  folder.now += std::chrono::nanoseconds(hours(24 * 36500)).count();
  retention.sweep();
  EXPECT_EQ(folder.removed, KeptIds{"old"});
  EXPECT_TRUE(fs::exists(folder.folder / "broken.ttrace"));
  EXPECT_TRUE(fs::exists(folder.folder / "notes.txt"));
  EXPECT_TRUE(fs::is_symlink(folder.folder / "link.ttrace"));
  EXPECT_TRUE(fs::exists(outside / "theirs.ttrace"));
  EXPECT_TRUE(fs::exists(folder.folder / "running.ttrace"));
  // The running session exceeds the quota: new sessions are rejected with an error.
  const auto rejected = retention.check_session_space();
  ASSERT_TRUE(rejected.has_value());
  EXPECT_EQ(rejected->error_code, ErrorCode::QuotaReached);
  EXPECT_NE(rejected->detail.find("--keep-bytes"), std::string::npos) << rejected->detail;
  EXPECT_NE(rejected->detail.find("1 that are being recorded hold "), std::string::npos);
  EXPECT_NE(rejected->detail.find("1 that cannot be read hold 14 bytes"), std::string::npos)
      << rejected->detail;
  info.state = SessionState::Done;
  EXPECT_TRUE((*running)->finish(info, {}).has_value());
  retention.sweep();
  EXPECT_FALSE(fs::exists(folder.folder / "running.ttrace"));
}

TEST(Retention, DeletedSessionsArePurgedAfterAnHour) {
  RetentionFolder folder;
  folder.add("a", hours(5));
  folder.add("b", hours(5));
  ASSERT_TRUE(folder.store.remove("a").has_value());
  auto retention = folder.retention({.max_age = {}, .keep_bytes = {}, .disk_reserve = 0});
  folder.now += std::chrono::nanoseconds(std::chrono::minutes(59)).count();
  retention.sweep();
  EXPECT_TRUE(folder.removed.empty());
  folder.now += std::chrono::nanoseconds(std::chrono::minutes(2)).count();
  retention.start(1ms);
  EXPECT_TRUE(wait_until([&] { return list_files(folder.folder.path()).size() == 1; }));
  retention.stop();
  EXPECT_EQ(folder.removed, KeptIds{"a"});
}

// ---------------------------------------------------------------------------
// The real server without free space

TEST(StorageLimits, RequestIsRejectedBeforeDiskIsFull) {
  ensure_backends_loaded();
  const SmallDisk folder(8);
  ASSERT_EQ(folder.problem(), "");
  {
    TestServer server({.data = folder.path(),
                       .retention = {.max_age = {}, .keep_bytes = {}, .disk_reserve = 2u << 20}});
    ASSERT_TRUE(server.wait_until_loaded());
    const std::string first = record(server, "first");
    ASSERT_EQ(server.del("/api/v1/sessions/" + first).status, 200);
    const std::string kept = record(server, "kept");
    // The disk fills up: deleted sessions are purged first, then requests are rejected.
    write_bytes(folder / "others", std::string(5u << 20, 'x'));
    std::string more;
    for (int i = 0; server.removed.empty(); ++i) {
      ASSERT_LT(i, 40);
      more += std::string(256u << 10, 'y');
      write_bytes(folder / "more", more);
      const TestResponse answer = server.post("/api/v1/generate", short_request("x").dump());
      if (answer.status == 202) server.wait_for_end(answer.body["id"]);
    }
    EXPECT_EQ(server.removed, KeptIds{first});
    const TestResponse rejected = [&] {
      for (int i = 0; i < 40; ++i) {
        more += std::string(256u << 10, 'y');
        write_bytes(folder / "more", more);
        const TestResponse answer = server.post("/api/v1/generate", short_request("x").dump());
        if (answer.status != 202) return answer;
        server.wait_for_end(answer.body["id"]);
      }
      return TestResponse{};
    }();
    EXPECT_EQ(rejected.status, 507) << rejected.body;
    EXPECT_EQ(rejected.body["code"], "quota_reached");
    EXPECT_NE(rejected.body["detail"].get<std::string>().find("--disk-reserve"), std::string::npos);
    EXPECT_GT(server.get("/api/v1/server").body["disk_free_bytes"], 0);
    // Imports are rejected, too, and leave no files.
    const std::string bytes = download(server, kept);
    const TestResponse no_room = import_session(server, bytes);
    EXPECT_EQ(no_room.status, 507) << no_room.body;
    EXPECT_EQ(no_room.body["code"], "quota_reached");
    // Existing sessions remain, and recording works again after space was freed.
    EXPECT_EQ(server.get("/api/v1/sessions/" + kept).body["state"], "done");
    fs::remove(folder / "others");
    record(server, "again");
  }
  {
    TestServer server({.data = folder.path()});  // no reserve: the write itself fails
    ASSERT_TRUE(server.wait_until_loaded());
    const KeptIds before = session_ids(server);
    std::string text = download(server, before.front());
    text.resize(20u << 20);  // sent in full, larger than the disk
    const auto files = list_files(folder.path());
    for (const TestResponse& rejected : {import_session(server, text)}) {
      EXPECT_EQ(rejected.status, 507) << rejected.body;
    }
    EXPECT_EQ(list_files(folder.path()), files);
    EXPECT_EQ(session_ids(server), before);
  }
}

TEST(StorageLimits, ReadOnlyFolderIsServedAndWritesFail) {
  ensure_backends_loaded();
  const TempFolder folder;
  std::string id, deleted;
  std::map<std::string, json> before;
  std::string bytes;
  {
    TestServer server({.data = folder.path()});
    ASSERT_TRUE(server.wait_until_loaded());
    id = record(server);
    deleted = record(server, "deleted");
    ASSERT_EQ(server.del("/api/v1/sessions/" + deleted).status, 200);
    before = all_responses(server, id);
    bytes = download(server, id);
  }
  {
    const ReadOnlyFolder read_only(folder.path());
    ASSERT_EQ(read_only.problem(), "");
    TestServer server({.data = folder.path()});
    EXPECT_EQ(all_responses(server, id), before);
    EXPECT_EQ(download(server, id), bytes);
    const std::string session = "/api/v1/sessions/" + id;
    const TestResponse rejected[] = {server.patch(session, {{"title", "x"}}), server.del(session),
                                     server.post("/api/v1/sessions/" + deleted + "/restore", ""),
                                     import_session(server, bytes)};
    for (const TestResponse& one : rejected) {
      EXPECT_EQ(one.status, 500) << one.body;
      EXPECT_EQ(one.body["code"], "storage_failed");
      EXPECT_NE(one.body["detail"].get<std::string>().find("permission"), std::string::npos)
          << one.body["detail"];
    }
    server.retention.sweep();
    EXPECT_EQ(all_responses(server, id), before);
  }
  TestServer server({.data = folder.path()});
  EXPECT_EQ(server.post("/api/v1/sessions/" + deleted + "/restore", "").status, 200);
  EXPECT_EQ(session_ids(server).size(), 2u);
}

}  // namespace
}  // namespace tt::test
