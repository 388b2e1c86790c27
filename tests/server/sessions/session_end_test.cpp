// Sessions that are read while they end, deleted while they are read, and disks without space.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
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
#include "tracer/format/file/session_edit.h"

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
  page.send(kText, R"({"type": "subscribe", "session": "*", "kinds": ["step", "token"]})");
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

// Deleted sessions can be restored, so their files are finished, too.
TEST(SessionEnd, DeletedWhileItIsReadBecomesOneFile) {
  ensure_backends_loaded();
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  Unfinished session(server, "Once");
  ASSERT_EQ(server.del("/api/v1/sessions/" + session.id).status, 200);
  const fs::path file = server.sessions.trash().all().at(0).path;
  EXPECT_TRUE(in_wal_mode(file));
  server.sessions.finish_files();
  EXPECT_TRUE(session.reader->step(StepId{0}).has_value()) << "the reader is not disturbed";
  session.reader.reset();
  server.sessions.finish_files();
  EXPECT_FALSE(in_wal_mode(file));
  EXPECT_EQ(journals(file.parent_path()), std::vector<std::string>{});
}

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

// Uploads, snapshots, exports of folders and conversions together leave the reserve to the
// recording that runs, and the recording loses nothing.
TEST(SessionEnd, ReserveIsHeldAgainstAllWritersTogether) {
  ensure_backends_loaded();
  constexpr std::uint64_t kReserve = 12u << 20;
  const SmallDisk disk(24);
  ASSERT_EQ(disk.problem(), "");
  TestServer server({.data = disk.path(),
                     .retention = {.max_age = {}, .keep_bytes = {}, .disk_reserve = kReserve}});
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string ended = record(server);
  const SmallSession session({small_step(0)});
  std::string upload = read_bytes(session.path);
  upload.resize(3u << 20);  // rejected when it is complete
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port);
  const auto exported = http_client(url).Get("/api/v1/sessions/" + ended + "/export?format=ndjson");
  ASSERT_TRUE(exported && exported->status == 200);
  const std::string log = exported->body;
  const std::string running = start_long_request(server);
  const auto recorded_bytes = [&] {
    std::uint64_t bytes = 0;
    for (const char* suffix : {"", "-wal", "-shm", "-reserve"}) {
      std::error_code none;
      const auto size = fs::file_size(disk.path() / (running + ".ttrace" + suffix), none);
      if (!none) bytes += size;
    }
    return bytes;
  };
  std::atomic<bool> stop = false;
  std::uint64_t fewest_free = UINT64_MAX;
  std::thread watch([&] {
    while (!stop) {
      // The recording may use the reserve.
      const std::uint64_t free = fs::space(disk.path()).available;
      fewest_free = std::min(fewest_free, free + recorded_bytes());
    }
  });
  std::mutex mutex;
  std::map<std::string, std::map<int, int>> answers;  // kind, status: how many
  const auto count = [&](const std::string& kind, const httplib::Result& answer) {
    const std::scoped_lock lock(mutex);
    // No answer: the server has answered before it read everything.
    ++answers[kind][answer ? answer->status : 0];
    if (!answer) return;
    if (answer->status == 507) {
      EXPECT_NE(answer->body.find("--disk-reserve"), std::string::npos) << answer->body;
    } else {
      EXPECT_TRUE(answer->status < 500 || answer->status == 503) << answer->body;
    }
  };
  const auto in_blocks = [&](std::size_t offset, httplib::DataSink& sink) {
    const std::size_t bytes = std::min<std::size_t>(64u << 10, upload.size() - offset);
    if (bytes > 0) return sink.write(upload.data() + offset, bytes);
    sink.done();
    return true;
  };
  constexpr const char* kUploads = "/api/v1/sessions";
  using Client = httplib::Client;
  const std::pair<std::string, std::function<httplib::Result(Client&)>> kinds[] = {
      {"upload",
       [&](Client& client) { return client.Post(kUploads, upload, "application/octet-stream"); }},
      {"upload of unknown size",
       [&](Client& client) {
         return client.Post(kUploads, in_blocks, "application/octet-stream");
       }},
      {"log", [&](Client& client) { return client.Post(kUploads, log, "application/x-ndjson"); }},
      {"folder",
       [&](Client& client) {
         return client.Get("/api/v1/sessions/" + ended + "/export?format=folder");
       }},
      {"parts",
       [&](Client& client) {
         return client.Get("/api/v1/sessions/" + ended + "/export?format=parquet&part_rows=1000");
       }},
      {"snapshot",
       [&](Client& client) { return client.Get("/api/v1/sessions/" + running + "/file"); }}};
  std::vector<std::thread> clients;
  for (const auto& [kind, send] : kinds) {
    for (int i = 0; i < 2; ++i) {
      clients.emplace_back([&] {
        Client client = http_client(url);
        for (int round = 0; round < 5; ++round) count(kind, send(client));
      });
    }
  }
  for (std::thread& client : clients) client.join();
  stop = true;
  watch.join();
  cancel_and_wait(server, running);
  EXPECT_GE(fewest_free, kReserve);
  int full = 0;
  for (const auto& [kind, statuses] : answers) {
    for (const auto& [status, times] : statuses) {
      RecordProperty(kind + " " + std::to_string(status), times);
      if (status == 507) full += times;
    }
  }
  EXPECT_GT(full, 0);
  const auto losses = SessionReader::open(disk.path() / (running + ".ttrace")).value().losses();
  EXPECT_EQ(losses.value().steps_not_written, 0u);
  EXPECT_TRUE(check_session(disk.path() / (running + ".ttrace")).value().empty());
}

// Another program truncates -shm, the index of the WAL that SQLite maps, while a session is
// recorded and read: this recording ends with the reason, the server and its next recordings do
// not.
TEST(SessionEnd, TruncatedSharedMemoryEndsOnlyItsRecording) {
  const TempFolder folder;
  RunningServer server(folder.path(), {"-t", "1", "-tb", "1", "-c", "2048"});
  ASSERT_TRUE(server.wait_until_loaded());
  WsClient page(server.port());
  page.send(kText, R"({"type": "subscribe", "session": "*", "kinds": ["step", "token", "op"]})");
  httplib::Client client = http_client(server.url);
  std::vector<std::string> ids;
  for (const std::uintmax_t bytes : {0U, 100U, 20'000U}) {
    SCOPED_TRACE(bytes);
    const std::string id = server.start_long_request();
    ASSERT_FALSE(id.empty());
    ids.push_back(id);
    std::atomic<bool> stop = false;
    std::vector<std::thread> readers;
    for (const char* kind : {"/hot", "/steps", ""}) {
      readers.emplace_back([&, kind] {
        httplib::Client get = http_client(server.url);
        while (!stop) {
          const auto answer = get.Get("/api/v1/sessions/" + id + kind);
          ASSERT_TRUE(answer) << "the server has ended";
          if (answer->status == 500) {
            EXPECT_NE(answer->body.find("-shm"), std::string::npos) << answer->body;
          }
        }
      });
    }
    const int steps = server.get("/api/v1/sessions/" + id)["steps"];
    fs::resize_file(folder.path() / (id + ".ttrace-shm"), bytes);
    const auto generated = [&] {
      return server.get("/api/v1/generate/" + id).value("generated", 0);
    };
    const int before = generated();
    EXPECT_TRUE(wait_until([&] { return generated() >= before + 20; })) << "generation goes on";
    EXPECT_EQ(client.Delete("/api/v1/generate/" + id)->status, 202);
    const json ended = server.wait_for_end(id);
    stop = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_NE(ended.value("error", "").find("truncated"), std::string::npos) << ended;
    const json session = server.get("/api/v1/sessions/" + id);
    EXPECT_EQ(session["state"], "failed") << session;
    EXPECT_GE(session["steps"], steps);
  }
  const std::string next = server.start_long_request();
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(client.Delete("/api/v1/generate/" + next)->status, 202);
  EXPECT_EQ(server.wait_for_end(next)["state"], "cancelled");
  ids.push_back(next);
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0);
  expect_single_valid_files(folder.path(), ids);
}

// Sessions that are uploaded faster than the server sweeps.
TEST(SessionEnd, QuotaMakesRoomForUploads) {
  const SmallSession session({small_step(0)});
  const std::uint64_t quota = 5 * fs::file_size(session.path);
  TestServer server(
      {.model = {}, .retention = {.max_age = {}, .keep_bytes = quota, .disk_reserve = 0}});
  const TempFolder folder;
  for (int i = 0; i < 20; ++i) {
    const fs::path copy = folder / "s.ttrace";
    fs::copy_file(session.path, copy, fs::copy_options::overwrite_existing);
    ASSERT_TRUE(rename_session(copy, "title " + std::to_string(i)).has_value());
    const TestResponse taken = import_session(server, read_bytes(copy));
    EXPECT_EQ(taken.status, 201) << taken.body;
    EXPECT_LE(server.retention.room().data_bytes, quota);
    EXPECT_TRUE(std::ranges::contains(session_ids(server), taken.body["id"].get<std::string>()));
  }
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
