// Sessions that are read while they end, deleted while they are read, and disks without space.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "server/sessions/retention.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/server/support/recorded_sessions.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/small_disk.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

// The files of SQLite beside the sessions.
std::vector<std::string> journals(const fs::path& folder) {
  std::vector<std::string> names = list_files(folder);
  std::erase_if(names, [](const std::string& name) {
    return !name.ends_with("-wal") && !name.ends_with("-shm") && !name.ends_with("-journal");
  });
  return names;
}

// Byte 18 of an SQLite file: 2 in WAL mode.
bool in_wal_mode(const fs::path& file) { return read_bytes(file).at(18) == 2; }

void expect_single_valid_files(const fs::path& folder, const std::vector<std::string>& ids) {
  EXPECT_EQ(journals(folder), std::vector<std::string>{});
  const TempFolder alone;
  for (const std::string& id : ids) {
    SCOPED_TRACE(id);
    EXPECT_FALSE(in_wal_mode(folder / (id + ".ttrace")));
    fs::copy_file(folder / (id + ".ttrace"), alone / "s.ttrace",
                  fs::copy_options::overwrite_existing);
    const auto problems = check_session(alone / "s.ttrace");
    ASSERT_TRUE(problems.has_value()) << problems.error().message;
    EXPECT_TRUE(problems->empty()) << problems->front();
  }
}

// Readers of every kind while sessions end: the last reader, or the server once a second, makes a
// single file of each.
TEST(SessionEnd, OneFileWhenReadMeanwhile) {
  const TempFolder folder;
  RunningServer server(folder.path(), {"-t", "1", "-tb", "1", "-c", "512"});
  ASSERT_TRUE(server.wait_until_loaded());
  constexpr std::array kReads = {"",           "/hot",   "/validation",        "/file",
                                 "/breakdown", "/steps", "/export?format=csv", "/query"};
  std::atomic<bool> stop = false;
  std::atomic<int> read = 0;
  std::mutex mutex;
  std::string current;
  std::vector<std::string> wrong;
  std::vector<std::thread> readers;
  for (const char* kind : kReads) {
    readers.emplace_back([&, kind] {
      httplib::Client client = http_client(server.url);
      while (!stop) {
        std::string id;
        {
          const std::scoped_lock lock(mutex);
          id = current;
        }
        if (id.empty()) continue;
        const std::string path = "/api/v1/sessions/" + id + kind;
        const auto answer =
            std::string(kind) == "/query"
                ? client.Post(path, R"({"sql": "SELECT count(*) FROM step"})", "application/json")
                : client.Get(path);
        if (answer && answer->status == 200) ++read;
        if (!answer || answer->status >= 500) {
          const std::scoped_lock lock(mutex);
          wrong.push_back(path + ": " + (answer ? answer->body : "no answer"));
        }
      }
    });
  }
  WsClient page(server.port());
  page.send(kText, R"({"type": "subscribe", "session": "*", "kinds": ["steps", "tokens"]})");
  std::vector<std::string> ids;
  httplib::Client client = http_client(server.url);
  for (int i = 0; i < 12; ++i) {
    const auto accepted = client.Post("/api/v1/generate",
                                      R"({"prompt": "Once", "max_tokens": 16, "ignore_eos": true})",
                                      "application/json");
    ASSERT_TRUE(accepted && accepted->status == 202);
    ids.push_back(json::parse(accepted->body)["id"]);
    {
      const std::scoped_lock lock(mutex);
      current = ids.back();
    }
    EXPECT_EQ(server.wait_for_end(ids.back())["error"], nullptr);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(read.load(), 50);
  EXPECT_TRUE(wrong.empty()) << wrong.size() << ": " << wrong.front();
  EXPECT_TRUE(wait_until([&] { return journals(folder.path()).empty(); }))
      << journals(folder.path()).size();
  // The next one is still being read when the server stops.
  const std::string last = server.start_long_request();
  ids.push_back(last);
  std::thread late([&] {
    httplib::Client reader = http_client(server.url);
    while (reader.Get("/api/v1/sessions/" + last + "/hot")) {
    }
  });
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0);
  late.join();
  expect_single_valid_files(folder.path(), ids);
}

// Sessions whose files are in WAL mode, because a reader had them open when they ended.
struct Unfinished {
  Unfinished(TestServer& server, const std::string& prompt) {
    id = server.generate({{"prompt", prompt}, {"max_tokens", 300}, {"ignore_eos", true}});
    EXPECT_TRUE(wait_until([&] {
      auto opened = server.sessions.open(id);
      if (!opened || opened->step_count().value_or(0) == 0) return false;
      reader = std::make_unique<SessionReader>(*std::move(opened));
      return true;
    }));
    server.wait_for_end(id);
    EXPECT_TRUE(in_wal_mode(server.data / (id + ".ttrace")));
  }
  std::string id;
  std::unique_ptr<SessionReader> reader;
};

TEST(SessionEnd, DeletedAndRestoredWhileItIsRead) {
  ensure_backends_loaded();
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  Unfinished session(server, "Once");
  const std::string path = "/api/v1/sessions/" + session.id;
  const auto steps = session.reader->step_count();
  ASSERT_TRUE(steps.has_value());
  const TestResponse deleted = server.del(path);
  EXPECT_EQ(deleted.status, 200) << deleted.body;
  EXPECT_EQ(server.get(path).status, 404);
  EXPECT_TRUE(session.reader->step(StepId{*steps - 1}).has_value())
      << "the reader is not disturbed";
  const TestResponse restored = server.post(path + "/restore", "");
  EXPECT_EQ(restored.status, 200) << restored.body;
  EXPECT_EQ(restored.body["steps"], *steps);
  session.reader.reset();
  expect_single_valid_files(server.data, {session.id});
  // While it is being recorded, it cannot be deleted.
  const std::string running = start_long_request(server);
  const TestResponse rejected = server.del("/api/v1/sessions/" + running);
  EXPECT_EQ(rejected.status, 409) << rejected.body;
  EXPECT_EQ(rejected.body["code"], "session_running");
  cancel_and_wait(server, running);
}

// Unlinking needs no space: also of a file in WAL mode, and also after a restart.
TEST(SessionEnd, FullDiskAllowsToDelete) {
  ensure_backends_loaded();
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted ? "restarted" : "same server");
    const SmallDisk disk(4);
    ASSERT_EQ(disk.problem(), "");
    std::vector<std::string> ids;
    const auto fill = [&] {
      std::string all;
      for (std::size_t block : {64u << 10, 4096u, 1u}) {
        for (;;) {
          const std::size_t before = all.size();
          all.resize(before + block, 'x');
          write_bytes(disk / "others", all);
          if (fs::file_size(disk / "others") == all.size()) continue;
          all.resize(before);
          break;
        }
      }
      EXPECT_EQ(fs::space(disk.path()).available, 0u);
    };
    const auto delete_all = [&](TestServer& server) {
      for (const std::string& id : ids) {
        const TestResponse deleted = server.del("/api/v1/sessions/" + id);
        EXPECT_EQ(deleted.status, 200) << deleted.body;
      }
      EXPECT_EQ(session_ids(server), std::vector<std::string>{});
    };
    auto server = std::make_unique<TestServer>(TestServerOptions{.data = disk.path()});
    ASSERT_TRUE(server->wait_until_loaded());
    ids.push_back(record(*server));
    auto unfinished = std::make_unique<Unfinished>(*server, "Once");
    ids.push_back(unfinished->id);
    fill();
    unfinished->reader.reset();
    if (restarted) {
      server.reset();
      server = std::make_unique<TestServer>(TestServerOptions{.model = {}, .data = disk.path()});
    }
    delete_all(*server);
  }
}

// Uploads, snapshots and exports together leave the reserve alone, to the byte.
TEST(SessionEnd, ReserveIsHeldAgainstAllWritersTogether) {
  constexpr std::uint64_t kReserve = 8u << 20;
  const SmallDisk disk(16);
  ASSERT_EQ(disk.problem(), "");
  TestServer server({.model = {},
                     .data = disk.path(),
                     .retention = {.max_age = {}, .keep_bytes = {}, .disk_reserve = kReserve}});
  const SmallSession session({small_step(0)});
  std::string upload = read_bytes(session.path);
  upload.resize(3u << 20);  // rejected when it is complete
  std::atomic<bool> stop = false;
  std::uint64_t fewest_free = UINT64_MAX;
  std::thread watch([&] {
    while (!stop) fewest_free = std::min(fewest_free, fs::space(disk.path()).available);
  });
  std::atomic<int> full = 0, other = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      httplib::Client client = http_client("http://127.0.0.1:" + std::to_string(server.port));
      for (int round = 0; round < 5; ++round) {
        // With the size announced, and without.
        const auto answer =
            i % 2 == 0 ? client.Post("/api/v1/sessions", upload, "application/octet-stream")
                       : client.Post(
                             "/api/v1/sessions",
                             [&](std::size_t offset, httplib::DataSink& sink) {
                               const std::size_t bytes =
                                   std::min<std::size_t>(64u << 10, upload.size() - offset);
                               if (bytes == 0) {
                                 sink.done();
                                 return true;
                               }
                               return sink.write(upload.data() + offset, bytes);
                             },
                             "application/octet-stream");
        if (!answer) continue;  // the server has answered before it read everything
        ++(answer->status == 507 ? full : other);
        if (answer->status == 507)
          EXPECT_NE(answer->body.find("--disk-reserve"), std::string::npos) << answer->body;
        else
          EXPECT_LT(answer->status, 500) << answer->body;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  stop = true;
  watch.join();
  EXPECT_GE(fewest_free, kReserve);
  EXPECT_GT(full.load(), 0);
  EXPECT_GT(other.load(), 0);
}

// Requests with a quota that holds few sessions: none is rejected while others can be removed.
TEST(SessionEnd, QuotaMakesRoomForEveryRequest) {
  ensure_backends_loaded();
  constexpr std::uint64_t kQuota = 600'000;
  TestServer server({.retention = {.max_age = {}, .keep_bytes = kQuota, .disk_reserve = 0}});
  ASSERT_TRUE(server.wait_until_loaded());
  std::vector<std::string> ids;
  for (int i = 0; i < 60; ++i) {
    const json body = {{"prompt", "Once"}, {"max_tokens", 4 + i % 40}, {"ignore_eos", true}};
    const TestResponse accepted = server.post("/api/v1/generate", body.dump());
    ASSERT_EQ(accepted.status, 202) << i << ": " << accepted.body;
    ids.push_back(accepted.body["id"]);
    if (i % 4 == 3) server.wait_for_end(ids.back());  // a queue of up to four
  }
  server.wait_for_end(ids.back());
  EXPECT_FALSE(server.removed.empty());
  server.retention.sweep();
  EXPECT_LE(server.retention.room().data_bytes, kQuota);
}

}  // namespace
}  // namespace tt::test
