// The queue of expensive queries: its bounds, sharing and cancellation; and in the real server,
// that other requests are answered meanwhile.
#include "server/http/query_queue.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
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

constexpr auto kForever = 1h;

// A queue for large queries. Clients wait and results are kept for ever unless a test says so.
QueryQueue::Limits limits_of(const QueryQueue::LaneLimits& large) {
  return {.large = large, .patience = kForever, .until_return = kForever, .kept = kForever};
}

// Clients of a QueryQueue without HTTP.
class Clients {
 public:
  explicit Clients(const QueryQueue::Limits& limits) : queue_(room_, limits) {}
  ~Clients() {
    finish = true;
    for (std::thread& client : threads_) client.join();
  }

  struct Client {
    std::atomic<bool> connected = true;
    std::atomic<int> status = 0;
    std::string body, retry_after;
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
                     [this, target](httplib::Response& out, const ContinueCheck& keep_going) {
                       const int count = ++computed;
                       while (!finish && keep_going()) std::this_thread::sleep_for(1ms);
                       if (finish) return respond(out, Json{{"of", target}, {"count", count}});
                       ++cancelled;
                       respond(out, problem_of(cancelled_error()));
                     });
      client.body = response.body;
      client.retry_after = response.get_header_value("Retry-After");
      client.status = response.status;
    });
    return client;
  }
  bool reaches(std::size_t running, std::size_t waiting, std::size_t clients) {
    return wait_until([&] {
      const auto stats = queue_.stats();
      return stats.running == running && stats.waiting == waiting && stats.clients == clients;
    });
  }
  bool answered(const Client& client) {
    return wait_until([&] { return client.status != 0; });
  }
  // The body of the answer, which must be a result.
  json result(const Client& client) {
    EXPECT_TRUE(answered(client));
    EXPECT_EQ(client.status, 200) << client.body;
    return json::parse(client.body);
  }
  // Sends a query that is answered with 503 and Retry-After.
  void send_and_leave(const std::string& target, std::optional<std::string> version = "1") {
    const Client& early = send(target, std::move(version));
    ASSERT_TRUE(answered(early));
    EXPECT_EQ(early.status, 503);
    EXPECT_EQ(early.retry_after, "2");
    EXPECT_EQ(json::parse(early.body)["code"], "queries_busy");
  }

  void stop() { queue_.stop(); }
  CacheRoom::Stats kept() const { return room_.stats(); }

  std::atomic<bool> finish = false;
  std::atomic<int> computed = 0, cancelled = 0;

 private:
  CacheRoom room_;
  QueryQueue queue_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::thread> threads_;
};

TEST(QueryQueue, LimitsRunningAndWaitingQueries) {
  Clients clients(limits_of({.running = 2, .waiting = 3, .clients = 9}));
  std::vector<Clients::Client*> accepted;
  for (unsigned i = 0; i < 5; ++i) {
    accepted.push_back(&clients.send(std::format("/{}", i)));
    ASSERT_TRUE(clients.reaches(std::min(i + 1, 2U), i > 1 ? i - 1 : 0, i + 1));
  }
  auto& rejected = clients.send("/5");
  ASSERT_TRUE(clients.answered(rejected));
  EXPECT_EQ(rejected.status, 503);
  EXPECT_EQ(json::parse(rejected.body)["code"], "queries_busy");
  // Small queries have their own limit.
  auto& small = clients.send("/small", "1", true);
  ASSERT_TRUE(clients.reaches(3, 3, 6));
  clients.finish = true;
  for (const auto* client : accepted) clients.result(*client);
  clients.result(small);
  EXPECT_EQ(clients.computed, 6);
}

// A 503 has the progress of the computation, also for a client whose equal query joined it.
TEST(QueryQueue, SaysHowFarAComputationIs) {
  auto limits = limits_of({.running = 1, .waiting = 2, .clients = 5});
  limits.patience = 0ms;
  CacheRoom room;
  QueryQueue queue(room, limits);
  std::atomic<bool> finish = false;
  std::atomic<int> computed = 0;
  const auto ask = [&](std::uint64_t all) {
    const auto progress = std::make_shared<QueryQueue::Progress>(all);
    httplib::Request request;
    request.target = "/weights";
    request.is_connection_closed = [] { return false; };
    httplib::Response response;
    queue.respond(request, response, {.version = "1", .progress = progress},
                  [&, progress](httplib::Response& out, const ContinueCheck& keep_going) {
                    ++computed;
                    progress->read_bytes = 300;
                    while (!finish && keep_going()) std::this_thread::sleep_for(1ms);
                    respond(out, Json{{"done", true}});
                  });
    return json::parse(response.body);
  };
  const json first = ask(1000);
  EXPECT_EQ(first["code"], "queries_busy");
  EXPECT_EQ(first["progress"]["all_bytes"], 1000);
  // The second request's own figures are those of a computation that is not begun.
  EXPECT_TRUE(wait_until(
      [&] { return ask(2000)["progress"] == json{{"read_bytes", 300}, {"all_bytes", 1000}}; }));
  finish = true;
  EXPECT_TRUE(wait_until([&] { return ask(3000).value("done", false); }));
  EXPECT_EQ(computed, 1);
}

// A client that got a 503, came back and then closed its connection has cancelled the query.
TEST(QueryQueue, AClosedConnectionCancelsAQueryThatWasToldToBeRepeated) {
  auto limits = limits_of({.running = 1, .waiting = 2, .clients = 5});
  limits.patience = 200ms;
  Clients clients(limits);
  clients.send_and_leave("/a");
  for (bool has_left = false; !has_left;) {
    auto& again = clients.send("/a");
    again.connected = false;
    ASSERT_TRUE(clients.answered(again));
    // On a busy machine it may get another 503 before it leaves.
    has_left = json::parse(again.body)["code"] != "queries_busy";
  }
  EXPECT_TRUE(wait_until([&] { return clients.cancelled == 1; }));
}

TEST(QueryQueue, EqualQueriesShareOneComputation) {
  Clients clients(limits_of({.running = 1, .waiting = 2, .clients = 5}));
  std::vector<Clients::Client*> equal = {&clients.send("/a")};
  ASSERT_TRUE(clients.reaches(1, 0, 1));
  for (int i = 0; i < 2; ++i) equal.push_back(&clients.send("/a"));
  ASSERT_TRUE(clients.reaches(1, 0, 3));
  // Not equal: another version, or none.
  auto& other_version = clients.send("/a", "2");
  ASSERT_TRUE(clients.reaches(1, 1, 4));
  auto& no_version = clients.send("/a", std::nullopt);
  ASSERT_TRUE(clients.reaches(1, 2, 5));
  auto& too_many = clients.send("/a");
  ASSERT_TRUE(clients.answered(too_many));
  EXPECT_EQ(too_many.status, 503);
  clients.finish = true;
  for (const auto* client : equal)
    EXPECT_EQ(clients.result(*client), json({{"of", "/a"}, {"count", 1}}));
  clients.result(other_version);
  clients.result(no_version);
  EXPECT_EQ(clients.computed, 3);
}

TEST(QueryQueue, LateClientGetsTheResultWhenItComesBack) {
  auto limits = limits_of({.running = 1, .waiting = 1, .clients = 9});
  limits.patience = 20ms;
  Clients clients(limits);
  clients.send_and_leave("/a");
  clients.send_and_leave("/a");
  clients.send_and_leave("/b");  // waits for its turn
  ASSERT_TRUE(clients.reaches(1, 1, 0));
  clients.finish = true;
  ASSERT_TRUE(wait_until([&] { return clients.kept().entries == 2; }));
  EXPECT_GT(clients.kept().bytes, 0U);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(clients.result(clients.send("/a")), json({{"of", "/a"}, {"count", 1}}));
    EXPECT_EQ(clients.result(clients.send("/b")), json({{"of", "/b"}, {"count", 2}}));
  }
  EXPECT_EQ(clients.computed, 2);
  EXPECT_EQ(clients.cancelled, 0);
}

TEST(QueryQueue, ResultsAreKeptForAWhile) {
  auto limits = limits_of({.running = 1, .waiting = 1, .clients = 9});
  limits.patience = 1s;  // also for the last answer, on a busy machine
  limits.kept = 20ms;
  Clients clients(limits);
  clients.send_and_leave("/a");
  clients.finish = true;
  ASSERT_TRUE(wait_until([&] { return clients.kept().entries == 1; }));
  std::this_thread::sleep_for(limits.kept);
  EXPECT_EQ(clients.result(clients.send("/a"))["count"], 2);
  EXPECT_EQ(clients.kept().entries, 0U);
}

TEST(QueryQueue, ComputationOfClientsThatDoNotComeBackIsCancelled) {
  auto limits = limits_of({.running = 1, .waiting = 1, .clients = 9});
  limits.patience = limits.until_return = 20ms;
  Clients clients(limits);
  clients.send_and_leave("/a");
  clients.send_and_leave("/b");
  ASSERT_TRUE(wait_until([&] { return clients.cancelled >= 1; }));
  ASSERT_TRUE(clients.reaches(0, 0, 0));
  clients.finish = true;
  clients.result(clients.send("/a"));
  EXPECT_EQ(clients.kept().entries, 0U);
}

// While a session is recorded, its results change.
TEST(QueryQueue, ResultOfARunningSessionIsGivenOnce) {
  auto limits = limits_of({.running = 1, .waiting = 1, .clients = 9});
  limits.patience = 20ms;
  Clients clients(limits);
  clients.send_and_leave("/a", std::nullopt);
  clients.send_and_leave("/a", std::nullopt);
  clients.finish = true;
  ASSERT_TRUE(wait_until([&] { return clients.kept().entries == 1; }));
  EXPECT_EQ(clients.result(clients.send("/a", std::nullopt))["count"], 1);
  EXPECT_EQ(clients.result(clients.send("/a", std::nullopt))["count"], 2);
}

TEST(QueryQueue, ComputesWhileAnyClientIsConnected) {
  Clients clients(limits_of({.running = 1, .waiting = 2, .clients = 4}));
  auto& first = clients.send("/a");
  ASSERT_TRUE(clients.reaches(1, 0, 1));
  auto& second = clients.send("/a");
  auto& third = clients.send("/a");
  ASSERT_TRUE(clients.reaches(1, 0, 3));
  first.connected = false;
  third.connected = false;
  ASSERT_TRUE(clients.answered(first) && clients.answered(third));
  EXPECT_EQ(third.status, 503);
  ASSERT_TRUE(clients.reaches(1, 0, 1));
  EXPECT_EQ(clients.cancelled, 0);
  second.connected = false;
  ASSERT_TRUE(clients.answered(second));
  ASSERT_TRUE(clients.reaches(0, 0, 0));
  EXPECT_EQ(clients.cancelled, 1);
}

TEST(QueryQueue, WaitingQueryOfDisconnectedClientIsRemoved) {
  Clients clients(limits_of({.running = 1, .waiting = 1, .clients = 4}));
  clients.send("/a");
  ASSERT_TRUE(clients.reaches(1, 0, 1));
  auto& waiting = clients.send("/b");
  ASSERT_TRUE(clients.reaches(1, 1, 2));
  waiting.connected = false;
  ASSERT_TRUE(clients.answered(waiting));
  auto& next = clients.send("/c");
  ASSERT_TRUE(clients.reaches(1, 1, 2));
  clients.finish = true;
  clients.result(next);
  EXPECT_EQ(clients.computed, 2);
}

TEST(QueryQueue, StopCancelsAllQueries) {
  Clients clients(limits_of({.running = 1, .waiting = 2, .clients = 4}));
  std::vector<Clients::Client*> all = {&clients.send("/a")};
  ASSERT_TRUE(clients.reaches(1, 0, 1));
  all.push_back(&clients.send("/a"));
  all.push_back(&clients.send("/b"));
  ASSERT_TRUE(clients.reaches(1, 1, 3));
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
  CacheRoom room;
  QueryQueue queue(room, limits_of({.running = 1, .waiting = 0, .clients = 1}));
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

// A computation must not slow down the inference, whose thread may be the one that asks.
TEST(QueryQueue, ComputesAtLowPriority) {
  CacheRoom room;
  QueryQueue queue(room);
  httplib::Request request;
  request.is_connection_closed = [] { return false; };
  httplib::Response response;
  std::atomic<int> priority = 0, policy = 0;
  queue.respond(request, response, {.version = "1"}, [&](httplib::Response&, const ContinueCheck&) {
    priority = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
    policy = sched_getscheduler(0);
  });
  EXPECT_GT(priority, getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())));
  EXPECT_EQ(policy, SCHED_BATCH);
}

// The number of expensive queries in this state.
double queries(httplib::Client& client, const std::string& state) {
  const auto answer = client.Get("/metrics");
  const std::string name = "\ntt_expensive_queries_" + state + " ";
  const auto at = answer->body.find(name);
  EXPECT_NE(at, std::string::npos);
  return std::stod(answer->body.substr(at + name.size()));
}

int milliseconds(Clock::duration time) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

TEST(QueryQueue, ServerAnswersInTimeDuringManyExpensiveQueries) {
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
    for (const char* target : {"report", "validation", "report?format=md", "report?format=json",
                               "pattern", "determinism", "heads", "comparison/small"})
      all.emplace_back(target);
    for (int i = 0; i < 4; ++i) all.push_back(std::format("reuse?sizes={}", 1000 + i));
    return all;
  }();
  std::vector<RawClient> clients;
  const auto sent = Clock::now();
  for (int i = 0; i < 48; ++i) {
    const std::string& target = targets[static_cast<std::size_t>(i) % targets.size()];
    clients.push_back(RawClient::from(std::format("127.0.0.{}", 2 + i % 8), server.port()));
    clients.back().send("GET /api/v1/sessions/long/" + target +
                        " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }
  std::vector<RawResponse> answers;
  Clock::duration longest{0};  // until the last of them has its answer
  std::jthread reading([&] {
    for (RawClient& client : clients) {
      RawResponse& answer = answers.emplace_back();
      if (!wait_until([&] { return (answer = client.read_response()).status != 0; }, 120s)) return;
    }
    longest = Clock::now() - sent;
  });
  // Small queries meanwhile, also expensive ones of a small session.
  httplib::Client other = http_client(server.url);
  Clock::duration slowest{0};
  for (const char* target :
       {"", "/steps", "/accesses?limit=10", "/breakdown", "/report", "/heads"}) {
    int status = 503;
    while (status == 503) {  // told to ask again, on a slow machine
      const auto began = Clock::now();
      const auto answer = other.Get(std::string("/api/v1/sessions/small") + target);
      ASSERT_TRUE(answer);
      slowest = std::max(slowest, Clock::now() - began);
      status = answer->status;
      if (status == 503) std::this_thread::sleep_for(1s);
    }
    EXPECT_EQ(status, 200) << target;
  }
  EXPECT_LT(slowest, kMaxResponseTime);
  reading.join();
  int done = 0, told = 0, rejected = 0;
  for (RawResponse& answer : answers) {
    if (answer.status == 503) {
      EXPECT_EQ(answer.headers["retry-after"], "2");
      EXPECT_EQ(json::parse(answer.body)["code"], "queries_busy");
      ++(answer.body.contains("still being computed") ? told : rejected);
    } else {
      EXPECT_EQ(answer.status, 200) << answer.body.substr(0, 200);
      ++done;
    }
  }
  std::printf(
      "%d done, %d still being computed, %d rejected within %d ms, slowest small query %d ms\n",
      done, told, rejected, milliseconds(longest), milliseconds(slowest));
  EXPECT_EQ(answers.size(), clients.size());
  EXPECT_LT(longest, 5s * kTimeFactor);
  EXPECT_GE(rejected, 1);
  // No client waited until everything was computed.
  EXPECT_GE(told, 1);
  EXPECT_GE(queries(other, "running"), 1);
  // Whoever comes back gets the result.
  for (const char* target : {"report", "validation"}) {
    httplib::Result answer;
    EXPECT_TRUE(wait_until(
        [&] {
          answer = other.Get(std::string("/api/v1/sessions/long/") + target);
          return answer && answer->status != 503;
        },
        120s));
    EXPECT_TRUE(answer && answer->status == 200) << target;
  }
  constexpr std::uint64_t kIndex = (64u << 20) * kMemoryFactor;  // stays in the cache
  watch.expect_limits(kIndex);
}

// The names of the threads and child processes of a process that run at low priority.
std::set<std::string> in_background(pid_t process) {
  std::set<std::string> names;
  const auto take = [&](const std::filesystem::path& task) {
    std::string stat;
    std::getline(std::ifstream(task / "stat"), stat);
    if (stat.empty()) return;  // ended meanwhile
    std::istringstream fields(stat.substr(stat.rfind(')') + 2));
    std::vector<std::string> words(std::istream_iterator<std::string>(fields), {});
    // nice, field 19; the first two are removed
    if (std::stoi(words.at(16)) > getpriority(PRIO_PROCESS, 0))
      names.insert(stat.substr(stat.find('(') + 1, stat.rfind(')') - stat.find('(') - 1));
  };
  const std::filesystem::path tasks = std::format("/proc/{}/task", process);
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    take(task.path());
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) take(std::format("/proc/{}", child));
  }
  return names;
}

// A thread inherits the priority of the one that starts it.
TEST(QueryQueue, OnlyAnswersAreGivenAtLowPriority) {
  const TempFolder folder;
  RunningServer server(folder.path());
  ASSERT_TRUE(server.wait_until_loaded());
  httplib::Client client = http_client(server.url);
  const std::string model = server.get("/api/v1/models")["models"][0]["id"];
  EXPECT_EQ(server.unload(model), 202);
  EXPECT_EQ(server.load(model), "");
  const auto expect = [&](const httplib::Result& answer) {
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200) << answer->body;
  };
  expect(client.Patch("/api/v1/models/" + model + "/memory", R"({"budget": "auto"})",
                      "application/json"));
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string session = "/api/v1/sessions/" + server.start_long_request();
  expect(get_when_computed(http_client(server.url), session + "/heatmap"));
  expect(get_when_computed(http_client(server.url), session + "/report"));
  expect(client.Post(session + "/query", R"({"sql": "SELECT count(*) FROM step"})",
                     "application/json"));
  expect(client.Get("/metrics"));
  auto names = in_background(server.program.pid());
  names.erase("memory");  // lowers its own priority
  EXPECT_EQ(names, std::set<std::string>({"folder-watch", "http-worker", "query"}));
}

}  // namespace
}  // namespace tt::test
