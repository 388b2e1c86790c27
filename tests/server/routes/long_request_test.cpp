// Long requests stop when the client disconnects, and large data is never held in memory as a
// whole.
#include <gtest/gtest.h>
#include <httplib.h>

#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "tests/server/frontend/raw_client.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/server/support/test_server.h"
#include "tests/support/cpu_time.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kSteps = 50'000;
constexpr std::uint64_t kAccesses = 16;  // per step of small_session.h

// A session of many small steps, written once per process.
const fs::path& long_session() {
  static const TempFolder folder;
  static const fs::path path = [] {
    const fs::path file = folder / "long.ttrace";
    write_small_steps(file, "long", kSteps);
    return file;
  }();
  return path;
}

// A server with that session and the records of its finished requests.
class LongServer {
 public:
  LongServer() { fs::copy_file(long_session(), server_.data / "long.ttrace"); }

  // Sends the request, waits until the server has worked on it for a while, and disconnects.
  void send_and_disconnect(const std::string& target) {
    RawClient client(server_.port);
    const auto before = cpu_time();
    client.send("GET /api/v1/sessions/long/" + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(wait_until([&] { return client.peer_has_read_all(); }));
    EXPECT_TRUE(wait_until([&] { return cpu_time() - before >= 20ms; }));
  }
  RequestRecord wait_for_record(const std::string& route) {
    RequestRecord found;
    EXPECT_TRUE(wait_until([&] {
      const std::scoped_lock lock(mutex_);
      for (const RequestRecord& one : answered_) {
        if (one.route != "/api/v1/sessions/:id/" + route) continue;
        found = one;
        answered_.clear();
        return true;
      }
      return false;
    })) << route;
    return found;
  }
  TestServer& server() { return server_; }

 private:
  TestServerOptions options() {
    TestServerOptions options{.model = {}};
    options.frontend.on_complete = [this](const RequestRecord& one) {
      const std::scoped_lock lock(mutex_);
      answered_.push_back(one);
    };
    return options;
  }
  std::mutex mutex_;
  std::vector<RequestRecord> answered_;
  TestServer server_{options()};
};

TEST(LongWork, StopsWhenClientDisconnects) {
  LongServer long_server;
  // A status of 200 would mean that the request was completed.
  for (const char* target : {"breakdown", "report", "validation", "pattern", "determinism", "reuse",
                             "heads", "comparison/long"}) {
    SCOPED_TRACE(target);
    long_server.send_and_disconnect(target);
    const std::string route =
        target == std::string("comparison/long") ? "comparison/:other" : target;
    const RequestRecord stopped = long_server.wait_for_record(route);
    // 200: the response had begun, which it does after 4 s.
    EXPECT_TRUE(stopped.status == 503 || stopped.status == 200) << stopped.status;
    EXPECT_LT(stopped.bytes, 10'000U);
  }
  // A cancelled request leaves no partial results: repeated, it returns everything.
  const TestResponse whole = long_server.server().get("/api/v1/sessions/long/breakdown?by=all");
  ASSERT_EQ(whole.status, 200) << whole.body;
  const json& all = whole.body["sums"]["all"];
  EXPECT_EQ(all["reads"].get<double>() + all["writes"].get<double>(), kSteps * kAccesses)
      << whole.body;
}

// The head is sent after the session was scanned, which may take longer than one read timeout.
std::string head_of(RawClient& client) {
  std::string head;
  EXPECT_TRUE(wait_until([&] {
    head = client.read_until("\r\n\r\n");
    return !head.empty();
  }));
  return head;
}

TEST(LongWork, ExportStopsWhenClientDisconnects) {
  LongServer long_server;
  for (const char* format : {"ndjson", "csv", "json", "perfetto"}) {
    SCOPED_TRACE(format);
    {
      RawClient client(long_server.server().port, 4096);
      client.send("GET /api/v1/sessions/long/export?format=" + std::string(format) +
                  " HTTP/1.1\r\nHost: localhost\r\n\r\n");
      EXPECT_TRUE(head_of(client).starts_with("HTTP/1.1 200"));
      EXPECT_EQ(client.read(1 << 20).size(), 1U << 20);
    }
    // The export has 50 MB or more.
    const RequestRecord stopped = long_server.wait_for_record("export");
    EXPECT_GT(stopped.bytes, 1U << 20);
    EXPECT_LT(stopped.bytes, 32U << 20);
  }
}

// A folder export, cancelled while it is created and while it is sent.
TEST(LongWork, ArchiveStopsWhenClientDisconnects) {
  LongServer long_server;
  const auto folders_left = [&] {
    std::error_code none;
    const fs::directory_iterator folders(long_server.server().data / ".work", none);
    return none ? 0 : std::distance(folders, fs::directory_iterator());
  };
  for (const char* query : {"format=folder", "part_rows=1000"}) {
    SCOPED_TRACE(query);
    {
      RawClient client(long_server.server().port);
      client.send("GET /api/v1/sessions/long/export?" + std::string(query) +
                  " HTTP/1.1\r\nHost: localhost\r\n\r\n");
      EXPECT_TRUE(wait_until([&] { return folders_left() == 1; }));
    }
    const RequestRecord stopped = long_server.wait_for_record("export");
    EXPECT_LT(stopped.bytes, 10'000U);
    EXPECT_EQ(folders_left(), 0);
  }
  {
    RawClient client(long_server.server().port, 4096);
    client.send(
        "GET /api/v1/sessions/long/export?format=folder&last_step=9999 HTTP/1.1\r\n"
        "Host: localhost\r\n\r\n");
    EXPECT_TRUE(head_of(client).starts_with("HTTP/1.1 200"));
    EXPECT_EQ(client.read(1 << 20).size(), 1U << 20);
    EXPECT_EQ(folders_left(), 1);
  }
  // The export has 13 MB.
  const RequestRecord stopped = long_server.wait_for_record("export");
  EXPECT_GT(stopped.bytes, 1U << 20);
  EXPECT_LT(stopped.bytes, 10U << 20);
  EXPECT_TRUE(wait_until([&] { return folders_left() == 0; }));
}

std::uint64_t peak_bytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  ADD_FAILURE() << "no VmHWM";
  return 0;
}

TEST(LongWork, ExportIsStreamedInBoundedMemory) {
  const TempFolder folder;
  fs::copy_file(long_session(), folder / "long.ttrace");
  RunningServer server(folder.path(), {"--no-model"});
  httplib::Client client = http_client(server.url);
  const std::uint64_t before = peak_bytes(server.program.pid());
  std::uint64_t bytes = 0;
  for (const char* format : {"parquet", "folder", "ndjson"}) {
    SCOPED_TRACE(format);
    bytes = 0;
    const auto sent = client.Get(std::string("/api/v1/sessions/long/export?format=") + format,
                                 [&](const char*, std::size_t more) {
                                   bytes += more;
                                   return true;
                                 });
    ASSERT_TRUE(sent && sent->status == 200);
    // For Parquet, one row group is held in memory.
    EXPECT_LT(peak_bytes(server.program.pid()) - before, 128U << 20);
  }
  EXPECT_GT(bytes, 400U << 20) << "size of the NDJSON log";
}

TEST(LongWork, RunFolderImportUsesBoundedMemory) {
  constexpr std::uint32_t kSome = 30'000;  // steps; more tokens without text would be rejected
  const TempFolder folder;
  fs::copy_file(long_session(), folder / "long.ttrace");
  RunningServer server(folder.path(), {"--no-model"});
  httplib::Client client = http_client(server.url);
  std::string archive;
  const auto sent = client.Get(
      "/api/v1/sessions/long/export?format=folder&last_step=" + std::to_string(kSome - 1),
      [&](const char* data, std::size_t bytes) {
        archive.append(data, bytes);
        return true;
      });
  ASSERT_TRUE(sent && sent->status == 200);
  EXPECT_GT(archive.size(), kSome * kAccesses * 64);
  const std::uint64_t before = peak_bytes(server.program.pid());
  const auto taken = client.Post("/api/v1/sessions", archive, "application/x-tar");
  ASSERT_TRUE(taken && taken->status == 201) << (taken ? taken->body : "no response");
  EXPECT_EQ(json::parse(taken->body)["steps"], kSome);
  EXPECT_LT(peak_bytes(server.program.pid()) - before, 64U << 20);
}

}  // namespace
}  // namespace tt::test
