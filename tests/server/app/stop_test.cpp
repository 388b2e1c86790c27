// tt-server gets SIGTERM while it is busy: it exits within its time limit (exit code 0; 1 when
// the limit is exceeded) and leaves valid files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <sstream>
#include <thread>

#include "program/force_exit.h"
#include "tests/server/frontend/raw_client.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_reader.h"

namespace tt {
namespace {

using namespace test;

void expect_valid_session(const std::filesystem::path& file, SessionState state) {
  EXPECT_FALSE(std::filesystem::exists(file.string() + "-wal"));
  const auto faults = check_session(file);
  ASSERT_TRUE(faults.has_value()) << faults.error().message;
  EXPECT_TRUE(faults->empty()) << faults->front();
  const auto reader = SessionReader::open(file);
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ(reader->info()->state, state);
}

// The id of a request whose prompt takes long to process.
std::string start_long_prompt(RunningServer& server) {
  json body = {{"max_tokens", 1}, {"tokens", json::array()}};
  for (int i = 0; i < 30'000; ++i) body["tokens"].push_back(300 + i % 700);
  httplib::Client client = http_client(server.url);
  const auto accepted = client.Post("/api/v1/generate", body.dump(), "application/json");
  if (!accepted || accepted->status != 202) {
    ADD_FAILURE() << (accepted ? accepted->body : "no response");
    return "";
  }
  return json::parse(accepted->body)["id"];
}

TEST(Stop, WhileModelIsLoading) {
  const test::TempFolder folder;
  RunningServer server(folder.path());
  ASSERT_TRUE(server.url.starts_with("http://"));
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0) << server.program.stderr_text();
}

TEST(Stop, DuringLongPrompt) {
  const test::TempFolder folder;
  RunningServer server(folder.path(), {"-c", "32768", "-ub", "512", "-t", "1", "-tb", "1"});
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = start_long_prompt(server);
  ASSERT_FALSE(id.empty());
  json status;
  ASSERT_TRUE(wait_until([&] {
    status = server.get("/api/v1/generate/" + id);
    return status.value("prompt_done", 0) >= 512;
  }));
  ASSERT_EQ(status["state"], "running");
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0) << server.program.stderr_text();
  expect_valid_session(folder.path() / (id + ".ttrace"), SessionState::Cancelled);
  // llama.cpp reports an aborted graph as an error; it must not be logged as a warning.
  std::istringstream log(server.program.stderr_text());
  for (std::string line; std::getline(log, line);)
    EXPECT_FALSE(line.contains(" warning ") && !line.contains("the model was trained with"))
        << line;
}

TEST(Stop, NotifiesLiveClientsAndCancelsQueuedRequests) {
  const test::TempFolder folder;
  RunningServer server(folder.path(), {"-t", "1", "-tb", "1"});
  ASSERT_TRUE(server.wait_until_loaded());
  std::vector<WsClient> clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back(server.port());
    ASSERT_EQ(clients.back().handshake().status, 101);
    clients.back().send(kText, R"({"type": "subscribe", "session": "*", "kinds": []})");
  }
  const std::string running = server.start_long_request();
  ASSERT_FALSE(running.empty());
  const std::string waiting = [&] {
    httplib::Client client = http_client(server.url);
    const auto accepted =
        client.Post("/api/v1/generate", R"({"prompt": "Then"})", "application/json");
    return accepted ? json::parse(accepted->body)["id"].get<std::string>() : "";
  }();
  server.program.signal(SIGTERM);
  for (WsClient& client : clients) {
    std::set<std::string> cancelled;
    int close_code = 0;
    for (;;) {
      const WsFrame frame = client.read();
      if (frame.opcode == kText) {
        const json event = json::parse(frame.payload);
        if (event["type"] == "state" && event["state"] == "cancelled")
          cancelled.insert(event["session"]);
      } else if (frame.opcode == kClose) {
        close_code = (static_cast<unsigned char>(frame.payload.at(0)) << 8) |
                     static_cast<unsigned char>(frame.payload.at(1));
        client.send(kClose, frame.payload);
        break;
      } else if (frame.opcode == -1) {
        break;
      }
    }
    EXPECT_EQ(cancelled, (std::set{running, waiting}));
    EXPECT_EQ(close_code, 1001);
  }
  EXPECT_EQ(server.program.wait(), 0) << server.program.stderr_text();
  expect_valid_session(folder.path() / (running + ".ttrace"), SessionState::Cancelled);
}

// One client does not read its response, one does not send the announced body.
struct StuckClients {
  StuckClients(RunningServer& server, const std::string& session)
      : reader(server.port(), 4096), writer(server.port()) {
    reader.send(get_request("/api/v1/sessions/" + session + "/file"));
    writer.send(
        "POST /api/v1/generate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "Content-Length: 1000\r\n\r\n{");
    // Both requests are being handled by a worker.
    EXPECT_TRUE(wait_until([&] { return reader.unread_bytes() > 0; }));
    EXPECT_TRUE(wait_until([&] { return writer.peer_has_read_all(); }));
  }
  RawClient reader, writer;
};

TEST(Stop, DoesNotWaitForStuckHttpClients) {
  const test::TempFolder folder;
  RunningServer server(folder.path(), {"-t", "1", "-tb", "1"});
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.start_long_request();
  const StuckClients stuck(server, id);
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0) << server.program.stderr_text();
  expect_valid_session(folder.path() / (id + ".ttrace"), SessionState::Cancelled);
}

// timeout(1) signals the process and then its group. Two different signals are used because
// the kernel may merge two equal ones.
TEST(Stop, TwoSignalsInShortSuccessionCountAsOne) {
  const test::TempFolder folder;
  RunningServer server(folder.path(), {"-t", "1", "-tb", "1"});
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.start_long_request();
  server.program.signal(SIGINT);
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0) << server.program.stderr_text();
  expect_valid_session(folder.path() / (id + ".ttrace"), SessionState::Cancelled);
}

TEST(Stop, SecondSignalTerminatesImmediately) {
  const test::TempFolder folder;
  RunningServer server(folder.path(), {"-t", "1", "-tb", "1"});
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.start_long_request();
  const StuckClients stuck(server, id);
  server.program.signal(SIGTERM);
  EXPECT_TRUE(wait_until([&] { return server.program.stderr_text().contains("stopping"); }));
  std::this_thread::sleep_for(kSignalDebounce + 50ms);  // an earlier signal would be ignored
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), -SIGTERM) << server.program.stderr_text();

  // The running session is complete, or the next start recovers it.
  RunningServer next(folder.path());
  const json session = next.get("/api/v1/sessions/" + id);
  EXPECT_TRUE(session["state"] == "cancelled" || session["state"] == "recovered") << session;
  EXPECT_GT(session["steps"], 0);
}

// A pipe with a buffer of one page and no reader.
class UnreadPipe {
 public:
  explicit UnreadPipe(const std::filesystem::path& path) {
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    fd_ = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT_GT(fcntl(fd_, F_SETPIPE_SZ, 4096), 0);
  }
  ~UnreadPipe() { close(fd_); }
  UnreadPipe(const UnreadPipe&) = delete;
  UnreadPipe& operator=(const UnreadPipe&) = delete;
  int bytes() const {
    int count = 0;
    EXPECT_EQ(ioctl(fd_, FIONREAD, &count), 0);
    return count;
  }

 private:
  int fd_;
};

TEST(Stop, UnreadStderrDoesNotBlock) {
  const test::TempFolder folder;
  const UnreadPipe pipe(folder / "stderr");
  const std::string data = (folder / "data").string();
  Program program(
      {"-c", std::string("exec ") + kTestPaths.server + " --port 0 -t 1 -tb 1 --log-level trace" +
                 " --data-dir " + data + " 2> " + (folder / "stderr").string()},
      {"PATH=/usr/bin:/bin"}, "/bin/sh");
  httplib::Client client = http_client(program.read_line());
  const auto get = [&](const std::string& path) {
    const auto answer = client.Get(path);
    return answer ? json::parse(answer->body) : json::object();
  };
  EXPECT_TRUE(
      wait_until([&] { return get("/api/v1/health").value("model_state", "") == "loaded"; }));
  EXPECT_GT(pipe.bytes(), 3500) << "the pipe is not full, so nothing is tested";
  const auto accepted =
      client.Post("/api/v1/generate", R"({"prompt": "Once", "max_tokens": 4})", "application/json");
  ASSERT_TRUE(accepted && accepted->status == 202);
  const std::string id = json::parse(accepted->body)["id"];
  EXPECT_TRUE(
      wait_until([&] { return get("/api/v1/generate/" + id).value("state", "") == "done"; }));

  // The last lines cannot be written, so it exceeds the limit and exits with 1.
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 1);
  expect_valid_session(std::filesystem::path(data) / (id + ".ttrace"), SessionState::Done);
}

}  // namespace
}  // namespace tt
