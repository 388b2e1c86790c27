// Starting and stopping the front end.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/server/frontend/raw_client.h"
#include "tests/server/frontend/test_frontend.h"
#include "tests/support/fair_clock.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

TEST(FrontendStart, ReportsBindErrors) {
  EchoHandler recorder;
  TestFrontend server;
  HttpFrontend second({}, recorder);
  const auto taken = second.start("127.0.0.1", server.port);
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().kind, HttpFrontendError::Kind::PortTaken);
  EXPECT_TRUE(taken.error().message.contains(std::to_string(server.port)));

  HttpFrontend third({}, recorder);
  const auto nowhere = third.start("no-such-host.invalid", 0);
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_EQ(nowhere.error().kind, HttpFrontendError::Kind::BadHost);

  HttpFrontend fourth({}, recorder);
  const auto foreign = fourth.start("192.0.2.1", 0);
  ASSERT_FALSE(foreign.has_value());
  EXPECT_EQ(foreign.error().kind, HttpFrontendError::Kind::BadHost);
}

TEST(FrontendStart, PortIsReleasedAfterStop) {
  EchoHandler recorder;
  std::uint16_t port = 0;
  for (int i = 0; i < 3; ++i) {
    HttpFrontend frontend({}, recorder);
    const auto address = frontend.start("127.0.0.1", port);
    ASSERT_TRUE(address.has_value()) << address.error().message;
    port = address->port;
    EXPECT_EQ(address->url(), "http://127.0.0.1:" + std::to_string(port));
    EXPECT_EQ(RawClient(port).exchange(get_request("/hello")).status, 404);
    frontend.stop();
  }
}

TEST(FrontendStop, FinishesRequestsInProgress) {
  TestFrontend server;
  RawClient client(server.port);
  client.send(get_request("/slow"));
  EXPECT_TRUE(wait_until([&] { return server.slow == 1; }));
  std::jthread stopping([&] { server.frontend.stop(); });
  // The port is closed while the request is still in progress.
  EXPECT_TRUE(wait_until([&] { return !accepts_connections(server.port); }));
  server.end_slow = true;
  stopping.join();
  const auto response = client.read_response();
  EXPECT_EQ(response.body, "slow");
  EXPECT_TRUE(client.closed_within(20s));
}

TEST(FrontendStop, ClosesAllConnectionsWithinGracePeriod) {
  TestFrontend server;
  RawClient idle(server.port);
  RawClient stream(server.port);
  stream.send(get_request("/stream"));
  RawClient stuck(server.port, 4096);  // reads nothing of 8 MB
  stuck.send(get_request("/big"));
  EXPECT_TRUE(wait_until([&] { return server.streams == 1; }));
  EXPECT_TRUE(wait_until([&] { return stuck.unread_bytes() > 0; }));
  const auto start = FairClock::now();
  server.frontend.stop(500ms);
  EXPECT_LT(FairClock::now() - start, 15s);
  EXPECT_EQ(server.streams, 0);
  EXPECT_TRUE(idle.closed_within(20s));
  EXPECT_TRUE(stream.closed_within(20s));
  EXPECT_TRUE(stuck.closed_within(20s));
  server.frontend.stop();  // repeated: no effect
}

}  // namespace
}  // namespace tt::test
