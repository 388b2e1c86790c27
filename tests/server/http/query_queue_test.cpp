// The queue of expensive queries: its bounds, sharing and cancellation; and in the real server,
// that other requests are answered meanwhile.
#include "server/http/query_queue.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <format>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "server/http/responses.h"
#include "tests/server/frontend/raw_client.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/server/support/server_watch.h"
#include "tests/server/support/test_server.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

// Clients of a QueryQueue without HTTP.
class Clients {
 public:
  explicit Clients(QueryQueue::Limits limits) : queue_(limits) {}
  ~Clients() {
    finish = true;
    for (std::thread& client : threads_) client.join();
  }

  struct Client {
    std::atomic<bool> connected = true;
    std::atomic<int> status = 0;
    std::string body;
  };
  // Sends a query, which is computed until `finish` is set or it is cancelled.
  Client& send(const std::string& target, std::optional<std::string> version = "1",
               bool small = false) {
    Client& client = *clients_.emplace_back(std::make_unique<Client>());
    threads_.emplace_back([this, target, version, small, &client] {
      httplib::Request request;
      request.target = target;
      request.is_connection_closed = [&client] { return !client.connected; };
      httplib::Response response;
      queue_.respond(request, response, {.version = version, .small = small},
                     [&](httplib::Response& out, const ContinueCheck& keep_going) {
                       ++computed;
                       while (!finish && keep_going()) std::this_thread::sleep_for(1ms);
                       if (finish) return respond(out, Json{{"of", target}});
                       ++cancelled;
                       respond(out, problem_of(cancelled_error()));
                     });
      client.body = response.body;
      client.status = response.status;
    });
    return client;
  }
  bool reaches(std::size_t running, std::size_t waiting, std::size_t sharing) {
    return wait_until([&] {
      const auto stats = queue_.stats();
      return stats.running == running && stats.waiting == waiting && stats.sharing == sharing;
    });
  }
  bool answered(const Client& client) {
    return wait_until([&] { return client.status != 0; });
  }

  void stop() { queue_.stop(); }

  std::atomic<bool> finish = false;
  std::atomic<int> computed = 0, cancelled = 0;

 private:
  QueryQueue queue_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::thread> threads_;
};

TEST(QueryQueue, LimitsRunningAndWaitingQueries) {
  Clients clients({.running = 2, .waiting = 3, .sharing = 4});
  std::vector<Clients::Client*> accepted;
  for (unsigned i = 0; i < 5; ++i) {
    accepted.push_back(&clients.send(std::format("/{}", i)));
    ASSERT_TRUE(clients.reaches(std::min(i + 1, 2U), i > 1 ? i - 1 : 0, 0));
  }
  auto& rejected = clients.send("/5");
  ASSERT_TRUE(clients.answered(rejected));
  EXPECT_EQ(rejected.status, 503);
  EXPECT_EQ(json::parse(rejected.body)["code"], "queries_busy");
  // Small sessions have their own limit.
  auto& small = clients.send("/small", "1", true);
  ASSERT_TRUE(clients.reaches(3, 3, 0));
  clients.finish = true;
  for (const auto* client : accepted) {
    ASSERT_TRUE(clients.answered(*client));
    EXPECT_EQ(client->status, 200);
  }
  ASSERT_TRUE(clients.answered(small));
  EXPECT_EQ(clients.computed, 6);
}

TEST(QueryQueue, EqualQueriesShareOneComputation) {
  Clients clients({.running = 1, .waiting = 2, .sharing = 3});
  std::vector<Clients::Client*> equal = {&clients.send("/a")};
  ASSERT_TRUE(clients.reaches(1, 0, 0));
  for (int i = 0; i < 3; ++i) equal.push_back(&clients.send("/a"));
  ASSERT_TRUE(clients.reaches(1, 0, 3));
  auto& too_many = clients.send("/a");
  ASSERT_TRUE(clients.answered(too_many));
  EXPECT_EQ(too_many.status, 503);
  // Not equal: another version, or none.
  auto& other_version = clients.send("/a", "2");
  ASSERT_TRUE(clients.reaches(1, 1, 3));
  auto& no_version = clients.send("/a", std::nullopt);
  ASSERT_TRUE(clients.reaches(1, 2, 3));
  clients.finish = true;
  for (const auto* client : equal) {
    ASSERT_TRUE(clients.answered(*client));
    EXPECT_EQ(client->status, 200);
    EXPECT_EQ(client->body, R"({"of":"/a"})");
  }
  ASSERT_TRUE(clients.answered(other_version) && clients.answered(no_version));
  EXPECT_EQ(clients.computed, 3);
}

TEST(QueryQueue, ComputesWhileAnyClientIsConnected) {
  Clients clients({.running = 1, .waiting = 2, .sharing = 4});
  auto& first = clients.send("/a");
  ASSERT_TRUE(clients.reaches(1, 0, 0));
  auto& second = clients.send("/a");
  auto& third = clients.send("/a");
  ASSERT_TRUE(clients.reaches(1, 0, 2));
  first.connected = false;
  third.connected = false;
  ASSERT_TRUE(clients.answered(third));
  EXPECT_EQ(third.status, 503);
  ASSERT_TRUE(clients.reaches(1, 0, 1));
  EXPECT_EQ(clients.cancelled, 0);
  second.connected = false;
  ASSERT_TRUE(clients.answered(first) && clients.answered(second));
  EXPECT_EQ(clients.cancelled, 1);
  ASSERT_TRUE(clients.reaches(0, 0, 0));
}

TEST(QueryQueue, WaitingQueryOfDisconnectedClientIsRemoved) {
  Clients clients({.running = 1, .waiting = 1, .sharing = 4});
  clients.send("/a");
  ASSERT_TRUE(clients.reaches(1, 0, 0));
  auto& waiting = clients.send("/b");
  ASSERT_TRUE(clients.reaches(1, 1, 0));
  waiting.connected = false;
  ASSERT_TRUE(clients.answered(waiting));
  auto& next = clients.send("/c");
  ASSERT_TRUE(clients.reaches(1, 1, 0));
  clients.finish = true;
  ASSERT_TRUE(clients.answered(next));
  EXPECT_EQ(next.status, 200);
  EXPECT_EQ(clients.computed, 2);
}

TEST(QueryQueue, StopCancelsAllQueries) {
  Clients clients({.running = 1, .waiting = 2, .sharing = 2});
  std::vector<Clients::Client*> all = {&clients.send("/a")};
  ASSERT_TRUE(clients.reaches(1, 0, 0));
  all.push_back(&clients.send("/a"));
  all.push_back(&clients.send("/b"));
  ASSERT_TRUE(clients.reaches(1, 1, 1));
  clients.stop();
  all.push_back(&clients.send("/c"));
  for (const auto* client : all) {
    ASSERT_TRUE(clients.answered(*client));
    EXPECT_EQ(client->status, 503);
    EXPECT_EQ(json::parse(client->body)["code"], "stopping");
  }
  EXPECT_EQ(clients.computed, 1);
  EXPECT_EQ(clients.cancelled, 1);
}

TEST(QueryQueue, ExceptionEndsTheQuery) {
  QueryQueue queue({.running = 1, .waiting = 0, .sharing = 1});
  httplib::Request request;
  request.is_connection_closed = [] { return false; };
  httplib::Response response;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(queue.respond(request, response, {.version = "1"},
                               [](httplib::Response&, const ContinueCheck&) {
                                 throw std::runtime_error("");
                               }),
                 std::runtime_error);
  }
  EXPECT_EQ(queue.stats().running, 0U);
}

TEST(QueryQueue, ServerStaysResponsiveDuringManyExpensiveQueries) {
  const TempFolder folder;
  constexpr std::uint32_t kSteps = 75'000;  // more than 4 MiB: a large session
  write_small_steps(folder / "long.ttrace", "long", kSteps);
  const SmallSession small({small_step(0), small_step(1)});
  std::filesystem::copy_file(small.path, folder / "small.ttrace");
  RunningServer server(folder.path(), {"--no-model"});
  ASSERT_TRUE(server.url.starts_with("http://"));
  ServerWatch watch(server.program.pid(), server.url);

  // Every target occurs four times, from several addresses.
  const std::vector<std::string> targets = [] {
    std::vector<std::string> all;
    for (int i = 0; i < 4; ++i) all.push_back(std::format("reuse?sizes={}", 1000 + i));
    for (const char* target : {"report", "report?format=md", "report?format=json", "validation",
                               "pattern", "determinism", "heads", "comparison/small"})
      all.emplace_back(target);
    return all;
  }();
  std::vector<RawClient> clients;
  for (int i = 0; i < 48; ++i) {
    const std::string& target = targets[static_cast<std::size_t>(i) % targets.size()];
    clients.push_back(RawClient::from(std::format("127.0.0.{}", 2 + i % 8), server.port()));
    clients.back().send("GET /api/v1/sessions/long/" + target +
                        " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }
  // Small queries meanwhile, also expensive ones of a small session.
  httplib::Client other = http_client(server.url);
  Clock::duration slowest{0};
  for (const char* target :
       {"", "/steps", "/accesses?limit=10", "/breakdown", "/report", "/heads"}) {
    const auto began = Clock::now();
    const auto answer = other.Get(std::string("/api/v1/sessions/small") + target);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200) << target;
    slowest = std::max(slowest, Clock::now() - began);
  }
  EXPECT_LT(slowest, kMaxResponseTime);
  int done = 0, rejected = 0;
  for (RawClient& client : clients) {
    RawResponse answer;
    ASSERT_TRUE(wait_until([&] { return (answer = client.read_response()).status != 0; }, 120s));
    if (answer.status == 503) {
      EXPECT_EQ(answer.headers["retry-after"], "2");
      EXPECT_EQ(json::parse(answer.body)["code"], "queries_busy");
      ++rejected;
    } else {
      EXPECT_EQ(answer.status, 200) << answer.body.substr(0, 200);
      ++done;
    }
  }
  std::printf(
      "%d done, %d rejected, slowest small query %d ms\n", done, rejected,
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(slowest).count()));
  EXPECT_GE(done, 10 * 4);
  EXPECT_GE(rejected, 1);
  constexpr std::uint64_t kIndex = (64u << 20) * kMemoryFactor;  // stays in the cache
  watch.expect_limits(kIndex);
}

}  // namespace
}  // namespace tt::test
