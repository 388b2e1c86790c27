// While a client keeps sending expensive bodies, statements, session files or queries: another
// client's generation continues, /health is fast, SIGTERM ends the server in time, and all other
// sessions are valid.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <format>
#include <functional>
#include <memory>
#include <print>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/http/mutator.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/server/support/recorded_sessions.h"
#include "tests/server/support/server_watch.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {
namespace {

constexpr const char* kJson = "application/json";

using Send = std::function<void(httplib::Client&, std::size_t i)>;

Send send_bodies() {
  std::vector<std::string> all = {
      R"({"messages":[{}])" + repeat(900'000, ",1") + "]}",
      R"({"prompt":")" + repeat(500'000, "é") + "\"}",
      R"({"messages":[{"role":"user","content":"a"})" +
          repeat(4000, R"(,{"role":"user","content":"é"})") + "]}",
      repeat(8u << 20, "["),
  };
  return [all = std::move(all)](httplib::Client& client, std::size_t i) {
    static_cast<void>(client.Post("/api/v1/generate", all[i % all.size()], kJson));
  };
}

Send send_statements() {
  const auto with = [](const std::string& sql) { return json{{"sql", sql}}.dump(); };
  std::string doubling = "WITH t0 AS (SELECT 1 AS a)";
  for (int i = 1; i <= 30; ++i)
    doubling +=
        std::format(", t{0} AS (SELECT a FROM t{1} UNION ALL SELECT a FROM t{1})", i, i - 1);
  std::vector<std::string> all = {
      with("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
           "count(DISTINCT printf('%200000d', i)) FROM n"),
      with("SELECT count(*) FROM access AS a, access AS b, access AS c, access AS d"),
      with(doubling + " SELECT count(*) FROM t30"),
  };
  return [all = std::move(all)](httplib::Client& client, std::size_t i) {
    static_cast<void>(client.Post("/api/v1/sessions/long/query", all[i % all.size()], kJson));
  };
}

Send send_uploads() {
  const SmallSession session({small_step(0), small_step(1)});
  run_sqlite3(session.path,
              "CREATE INDEX i ON tt_model_file(id + length(hex(zeroblob(400000000))))");
  std::vector<std::string> all = {read_bytes(session.path), repeat(2'000'000, R"({"a":)"),
                                  repeat(1'000'000, "{}\n")};
  return [all = std::move(all)](httplib::Client& client, std::size_t i) {
    static_cast<void>(
        client.Post("/api/v1/sessions", all[i % all.size()], "application/octet-stream"));
  };
}

Send send_queries() {
  return [](httplib::Client& client, std::size_t i) {
    constexpr const char* kTargets[] = {"report", "validation", "pattern", "determinism"};
    const std::string target = i % 2 == 0 ? std::format("reuse?sizes={}", 1000 + i)
                                          : kTargets[i / 2 % std::size(kTargets)];
    static_cast<void>(client.Get("/api/v1/sessions/long/" + target));
  };
}

// Several threads that send until the server ends.
class HostileClients {
 public:
  HostileClients(const std::string& url, std::size_t count, const Send& send) {
    for (std::size_t first = 0; first < count; ++first) {
      threads_.emplace_back([this, url, first, count, send](const std::stop_token& stop) {
        httplib::Client client = http_client(url);
        for (std::size_t i = first; !stop.stop_requested(); i += count) {
          send(client, i);
          ++sent;
        }
      });
    }
  }

  std::atomic<std::size_t> sent = 0;

 private:
  std::vector<std::jthread> threads_;
};

// A client that reads the events of its own generation.
class StreamingClient {
 public:
  explicit StreamingClient(const std::string& url) : client_(http_client(url)) {
    thread_ = std::jthread([this] { read(); });
  }

  std::string id() {
    const std::scoped_lock lock(mutex_);
    return id_;
  }
  std::size_t tokens() const { return tokens_; }
  // Between two events, also the present one.
  std::chrono::milliseconds longest_silence() {
    const std::scoped_lock lock(mutex_);
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::max(longest_, Clock::now() - last_));
  }
  void measure_from_now() {
    const std::scoped_lock lock(mutex_);
    last_ = Clock::now();
    longest_ = {};
  }

 private:
  void read() {
    httplib::Request request;
    request.method = "POST";
    request.path = "/api/v1/generate";
    request.set_header("Content-Type", kJson);
    request.body =
        json{{"prompt", "Once"}, {"max_tokens", 60'000}, {"ignore_eos", true}, {"stream", true}}
            .dump();
    request.response_handler = [this](const httplib::Response& response) {
      const std::string location = response.get_header_value("Location");
      const std::scoped_lock lock(mutex_);
      id_ = location.substr(location.rfind('/') + 1);
      return true;
    };
    request.content_receiver = [this](const char* data, std::size_t size, std::size_t,
                                      std::size_t) {
      if (std::string_view(data, size).contains("event: token")) ++tokens_;
      const std::scoped_lock lock(mutex_);
      longest_ = std::max(longest_, Clock::now() - last_);
      last_ = Clock::now();
      return true;
    };
    static_cast<void>(client_.send(request));
  }

  httplib::Client client_;
  std::mutex mutex_;
  std::string id_;
  Clock::time_point last_ = Clock::now();
  Clock::duration longest_{};
  std::atomic<std::size_t> tokens_ = 0;
  std::jthread thread_;
};

void expect_valid(const std::filesystem::path& file, SessionState state) {
  const auto faults = check_session(file);
  ASSERT_TRUE(faults.has_value()) << faults.error().message;
  EXPECT_TRUE(faults->empty()) << faults->front();
  const auto reader = SessionReader::open(file);
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ(reader->info()->state, state);
}

class HostileClientsTest : public ::testing::TestWithParam<std::pair<const char*, Send (*)()>> {};

TEST_P(HostileClientsTest, DisturbNobody) {
  const Send send = GetParam().second();
  const TempFolder folder;
  write_small_steps(folder / "long.ttrace", "long", 60'000);
  const std::string before = read_bytes(folder / "long.ttrace");
  RunningServer server(folder.path(), {"-c", "65536", "-t", "1"});
  ASSERT_TRUE(server.wait_until_loaded());
  StreamingClient live(server.url);
  ASSERT_TRUE(wait_until([&] { return live.tokens() > 10; }));

  ServerWatch watch(server.program.pid(), server.url);
  HostileClients hostile(server.url, 6, send);
  live.measure_from_now();
  const std::size_t tokens = live.tokens();
  // How long the server is under load; what is waited for is that nothing happens.
  std::this_thread::sleep_for(4s);
  EXPECT_GT(live.tokens(), tokens);
  EXPECT_LT(live.longest_silence(), 2s * kTimeFactor);
  watch.stop();
  EXPECT_LT(watch.health_p99(), ServerWatch::kMaxHealthTime);
  EXPECT_LE(watch.memory_growth(), ServerWatch::kMaxGrowth);
  std::println("{} hostile requests, {} tokens, longest silence {} ms, /health p99 {} ms, +{} MiB",
               hostile.sent.load(), live.tokens() - tokens, live.longest_silence().count(),
               watch.health_p99().count(), watch.memory_growth() >> 20);

  const auto began = Clock::now();
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0) << server.program.stderr_text();
  EXPECT_LT(Clock::now() - began, 5s * kTimeFactor);
  EXPECT_EQ(read_bytes(folder / "long.ttrace"), before);
  expect_valid(folder.path() / (live.id() + ".ttrace"), SessionState::Cancelled);
}

INSTANTIATE_TEST_SUITE_P(Hostile, HostileClientsTest,
                         ::testing::Values(std::pair("Bodies", &send_bodies),
                                           std::pair("Statements", &send_statements),
                                           std::pair("Uploads", &send_uploads),
                                           std::pair("Queries", &send_queries)),
                         [](const auto& made) { return std::string(made.param.first); });

}  // namespace
}  // namespace tt::test
