// Misbehaving, slow, numerous and disconnecting clients do not affect others.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/frontend/raw_client.h"
#include "tests/server/frontend/test_frontend.h"
#include "tests/support/cpu_time.h"
#include "tests/support/fair_clock.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

// The 99th percentile of the request time, each request on a new connection.
std::chrono::microseconds p99_of_new_connections(std::uint16_t port, int count) {
  std::vector<std::chrono::microseconds> times;
  for (int i = 0; i < count; ++i) {
    const auto start = FairClock::now();
    RawClient client(port);
    EXPECT_EQ(client.exchange(get_request("/hello")).body, "hello");
    times.push_back(
        std::chrono::duration_cast<std::chrono::microseconds>(FairClock::now() - start));
  }
  std::ranges::sort(times);
  return times[times.size() * 99 / 100];
}

TEST(FrontendLimits, IdleConnectionsDoNotDelayOthers) {
  HttpFrontendOptions options;
  options.max_connections_per_peer = options.max_connections;  // all connections come from one peer
  TestFrontend server(options);
  std::vector<RawClient> idle;
  for (int i = 0; i < 64; ++i) idle.emplace_back(server.port);
  for (int i = 0; i < 64; ++i) {
    idle.emplace_back(server.port);
    idle.back().send("GET /hello HTTP/1.1\r\nHo");
  }
  for (int i = 0; i < 64; ++i) {  // kept alive after a response
    idle.emplace_back(server.port);
    ASSERT_EQ(idle.back().exchange(get_request("/hello")).status, 200);
  }
  for (int i = 0; i < 64; ++i) {  // disconnect after half a head
    RawClient client(server.port);
    client.send("GET /he");
    if (i % 2 == 0) client.reset();
  }
  const auto p99 = p99_of_new_connections(server.port, 300);
  RecordProperty("p99_us", static_cast<int>(p99.count()));
  EXPECT_LT(p99, 5s);  // half of the head timeout
  // The waiting connections still work.
  for (int i = 0; i < 64; ++i) idle[static_cast<std::size_t>(i)].send(get_request("/hello"));
  for (int i = 64; i < 128; ++i) {
    idle[static_cast<std::size_t>(i)].send("st: localhost\r\n\r\n");
  }
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(idle[static_cast<std::size_t>(i)].read_response().body, "hello") << i;
  }
}

TEST(FrontendLimits, WaitingConnectionsUseNoCpu) {
  TestFrontend server;
  std::vector<RawClient> waiting;
  for (int i = 0; i < 32; ++i) {
    waiting.emplace_back(server.port);
    waiting.back().send("GET /hello HTTP/1.1\r\nHo");
  }
  wait_until_input_handled(server.port);
  const auto before = cpu_time();
  std::this_thread::sleep_for(1s);  // the CPU time of one second is measured
  EXPECT_LT(cpu_time() - before, 100ms);
}

TEST(FrontendLimits, TimeoutsCloseStalledConnections) {
  HttpFrontendOptions options;
  options.idle_timeout = 300ms;
  options.head_timeout = 300ms;
  options.body_timeout = 300ms;
  TestFrontend server(options);
  RawClient silent(server.port);
  RawClient half(server.port);
  half.send("GET /he");
  RawClient kept(server.port);
  EXPECT_EQ(kept.exchange(get_request("/hello")).status, 200);
  RawClient body(server.port);
  body.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf");
  // Sending single bytes does not extend the deadline of the head.
  RawClient trickle(server.port);
  const auto start = FairClock::now();
  while (!trickle.closed_within(50ms)) {
    ASSERT_LT(FairClock::now() - start, 20s);
    trickle.send("x");
  }
  EXPECT_TRUE(silent.closed_within(20s));
  EXPECT_TRUE(half.closed_within(20s));
  EXPECT_TRUE(kept.closed_within(20s));
  EXPECT_TRUE(body.closed_within(20s));
  EXPECT_EQ(RawClient(server.port).exchange(get_request("/hello")).status, 200);
}

TEST(FrontendLimits, NewConnectionReplacesOldestIdleOne) {
  HttpFrontendOptions options;
  options.max_connections = 8;
  TestFrontend server(options);
  RawClient first(server.port);
  std::vector<RawClient> others;
  for (int i = 0; i < 7; ++i) {
    others.emplace_back(server.port);
    EXPECT_EQ(others.back().exchange(get_request("/hello")).status, 200);
  }
  RawClient one_more(server.port);
  EXPECT_EQ(one_more.exchange(get_request("/hello")).status, 200);
  EXPECT_TRUE(first.closed_within(20s));
  EXPECT_EQ(others.front().exchange(get_request("/hello")).status, 200);
}

TEST(FrontendLimits, Returns503WhenAllConnectionsAreBusy) {
  HttpFrontendOptions options;
  options.max_connections = 2;
  TestFrontend server(options);
  RawClient one(server.port);
  RawClient two(server.port);
  one.send(get_request("/stream"));
  two.send(get_request("/stream"));
  EXPECT_TRUE(wait_until([&] { return server.streams == 2; }));
  EXPECT_EQ(RawClient(server.port).read_response().status, 503);
}

TEST(FrontendLimits, ConnectionsPerPeerAreLimited) {
  HttpFrontendOptions options;
  options.max_connections = 8;
  options.max_connections_per_peer = 4;
  TestFrontend server(options);
  RawClient other = RawClient::from("127.0.0.2", server.port);
  EXPECT_EQ(other.exchange(get_request("/hello")).status, 200);
  // An idle connection is replaced by the next one of the same peer, not of another. It is
  // idle once its worker has returned it, shortly after its response has arrived.
  const auto connect_one = [&] {
    std::optional<RawClient> client;
    EXPECT_TRUE(wait_until([&] {
      client.emplace(server.port);
      return client->exchange(get_request("/hello")).status == 200;
    }));
    return *std::move(client);
  };
  std::vector<RawClient> mine;
  for (int i = 0; i < 20; ++i) mine.push_back(connect_one());
  EXPECT_TRUE(mine.front().closed_within(20s));
  EXPECT_EQ(other.exchange(get_request("/hello")).status, 200);
  // A peer whose connections are all busy gets 503; other peers are still accepted.
  mine.clear();
  for (int i = 0; i < 4; ++i) {
    mine.push_back(connect_one());
    mine.back().send(get_request("/stream"));
    EXPECT_TRUE(wait_until([&] { return server.streams == i + 1; }));
  }
  const RawResponse rejected = RawClient(server.port).read_response();
  EXPECT_EQ(rejected.status, 503);
  EXPECT_EQ(rejected.headers.at("retry-after"), "2");
  EXPECT_EQ(RawClient::from("127.0.0.3", server.port).exchange(get_request("/hello")).status, 200);
}

// A reader that reads a few bytes now and then never hits the idle timeout; it must still not
// occupy a worker for hours.
TEST(FrontendLimits, SlowReaderIsDisconnected) {
  HttpFrontendOptions options;
  options.io_timeout = 500ms;
  options.max_workers = 1;
  TestFrontend server(options);
  RawClient slow(server.port, 4096);
  slow.send(get_request("/big"));
  RawClient next(server.port);
  next.send(get_request("/hello"));
  std::atomic<bool> served = false;
  std::thread waiting([&] { served = next.read_response().body == "hello"; });
  // 8 MiB at 10 KB/s would take 15 minutes; no single write waits for 500 ms.
  const auto start = FairClock::now();
  while (!served && FairClock::now() - start < 10s) {
    slow.read(200);
    std::this_thread::sleep_for(20ms);  // the rate of this reader
  }
  waiting.join();
  EXPECT_TRUE(served);
}

TEST(FrontendLimits, StreamsDoNotBlockOtherRequests) {
  TestFrontend server;
  std::vector<RawClient> streams;
  for (int i = 0; i < 32; ++i) {
    streams.emplace_back(server.port);
    streams.back().send(get_request("/stream"));
  }
  EXPECT_TRUE(wait_until([&] { return server.streams == 32; }));
  EXPECT_LT(p99_of_new_connections(server.port, 100), 5s);  // streams never end by themselves
}

// More slow requests than the server's two workers answer at a time.
class SlowRequests {
 public:
  explicit SlowRequests(TestFrontend& server) : server_(server) {
    for (int i = 0; i < 6; ++i) {
      clients_.emplace_back(server.port);
      clients_.back().send(get_request("/slow"));
    }
    EXPECT_TRUE(wait_until([&] { return server_.slow == 2; }));
  }
  void expect_answers() {
    server_.end_slow = true;
    for (auto& client : clients_) EXPECT_EQ(client.read_response().body, "slow");
  }

 private:
  TestFrontend& server_;
  std::vector<RawClient> clients_;
};

TEST(FrontendLimits, UrgentRequestsAreAnsweredWhenWorkersAreBusy) {
  HttpFrontendOptions options;
  options.max_workers = 2;
  options.is_urgent = [](const RequestRecord& request) {
    return request.method == "GET" && request.path == "/hello";
  };
  TestFrontend server(options);
  SlowRequests requests(server);
  EXPECT_EQ(RawClient(server.port).exchange(get_request("/hello")).body, "hello");
  EXPECT_EQ(server.slow, 2);
  requests.expect_answers();
}

TEST(FrontendLimits, RequestsAreQueuedWhenWorkersAreBusy) {
  HttpFrontendOptions options;
  options.max_workers = 2;
  TestFrontend server(options);
  SlowRequests requests(server);
  requests.expect_answers();
}

TEST(FrontendLimits, WorkersPerPeerAreLimited) {
  HttpFrontendOptions options;
  options.max_workers = 4;
  options.max_workers_per_peer = 3;
  TestFrontend server(options);
  std::vector<RawClient> mine;
  for (int i = 0; i < 3; ++i) {
    mine.emplace_back(server.port);
    mine.back().send(get_request("/stream"));
  }
  EXPECT_TRUE(wait_until([&] { return server.streams == 3; }));
  for (int i = 0; i < 2; ++i) {
    mine.emplace_back(server.port);
    mine.back().send(get_request("/hello"));
  }
  // Later requests of another peer overtake them repeatedly.
  RawClient other = RawClient::from("127.0.0.2", server.port);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(other.exchange(get_request("/hello")).status, 200);
  EXPECT_FALSE(mine[3].closed_within(50ms));
  server.end_streams = true;
  for (int i = 3; i < 5; ++i)
    EXPECT_EQ(mine[static_cast<std::size_t>(i)].read_response().body, "hello");
}

TEST(FrontendLimits, RecoversFromDescriptorExhaustion) {
  TestFrontend server;
  EXPECT_EQ(RawClient(server.port).exchange(get_request("/hello")).status, 200);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  {
    // The clients' descriptors are open already; the remaining ones are the server's.
    std::vector<RawClient> clients(20);
    rlimit tight = before;
    tight.rlim_cur = open_descriptors() + 4;
    setrlimit(RLIMIT_NOFILE, &tight);
    for (auto& client : clients) client.connect(server.port);
    // Idle connections are closed one by one.
    EXPECT_EQ(clients.back().exchange(get_request("/hello")).status, 200);
    EXPECT_TRUE(clients.front().closed_within(20s));
    // Without idle connections nothing can be closed, and the acceptor must not spin.
    for (auto& client : clients) client.send(get_request("/stream"));
    EXPECT_TRUE(wait_until([&] { return server.streams > 0; }));
    const auto cpu = cpu_time();
    std::this_thread::sleep_for(500ms);  // the CPU time of half a second is measured
    EXPECT_LT(cpu_time() - cpu, 200ms);
    setrlimit(RLIMIT_NOFILE, &before);
  }
  EXPECT_EQ(RawClient(server.port).exchange(get_request("/hello")).status, 200);
}

TEST(FrontendLimits, ThousandConnectionsLeakNoDescriptors) {
  const std::size_t before = open_descriptors();
  {
    TestFrontend server;
    EXPECT_EQ(RawClient(server.port).exchange(get_request("/hello")).status, 200);
    const std::size_t running = open_descriptors();
    for (int i = 0; i < 1000; ++i) {
      RawClient client(server.port);
      switch (i % 6) {
        case 1:
          client.send("GET /he");
          break;
        case 2:
          EXPECT_EQ(client.exchange(get_request("/hello")).status, 200);
          break;
        case 3:
          client.send(get_request("/hello"));
          break;  // does not wait for the response
        case 4:
          client.send(get_request("/big"));
          client.reset();
          break;
        case 5:
          client.send(upgrade_request());
          break;
        default:  // sends nothing
          break;
      }
    }
    EXPECT_TRUE(wait_until([&] { return open_descriptors() <= running; }))
        << open_descriptors() << " after " << running;
  }
  EXPECT_LE(open_descriptors(), before + kLeakedDescriptors);
}

}  // namespace
}  // namespace tt::test
