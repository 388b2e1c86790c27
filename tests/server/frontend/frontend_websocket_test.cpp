// WebSocket on the same port as HTTP.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/server/frontend/raw_client.h"
#include "tests/server/frontend/test_frontend.h"
#include "tests/support/fair_clock.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

void expect_echo(WsClient& client, int opcode, const std::string& payload) {
  client.send(opcode, payload);
  const WsFrame frame = client.read();
  EXPECT_EQ(frame.opcode, opcode);
  EXPECT_TRUE(frame.fin);
  EXPECT_TRUE(frame.payload == payload) << frame.payload.size() << " of " << payload.size();
}

TEST(FrontendWebSocket, CompletesHandshakeAndEchoes) {
  TestFrontend server;
  WsClient client(server.port, "Origin: http://127.0.0.1\r\n");
  ASSERT_EQ(client.handshake().status, 101);
  EXPECT_EQ(client.handshake().headers.at("sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  expect_echo(client, kText, "hello");
  expect_echo(client, kText, "");
  expect_echo(client, kBinary, std::string("\0\x01\xff", 3));
  for (const std::size_t size : {125u, 126u, 4096u, 65535u, 65536u, 200'000u, 1u << 20}) {
    expect_echo(client, kBinary, std::string(size, 'x'));
  }
  EXPECT_EQ(server.recorder.upgrade(0).path, "/api/v1/live");
}

TEST(FrontendWebSocket, ReassemblesFragmentsAroundPing) {
  TestFrontend server;
  WsClient client(server.port);
  client.send(kText, "one ", false);
  client.send(kPing, "are you there");
  client.send(kContinuation, std::string(70'000, 'x'), false);
  client.send(kContinuation, " three");
  WsFrame frame = client.read();
  EXPECT_EQ(frame.opcode, kPong);
  EXPECT_EQ(frame.payload, "are you there");
  frame = client.read();
  EXPECT_EQ(frame.opcode, kText);
  EXPECT_EQ(frame.payload, "one " + std::string(70'000, 'x') + " three");
}

TEST(FrontendWebSocket, UpgradesKeptAliveConnection) {
  TestFrontend server;
  RawClient raw(server.port);
  EXPECT_EQ(raw.exchange(get_request("/hello")).body, "hello");
  EXPECT_EQ(raw.exchange(get_request("/hello")).body, "hello");
  EXPECT_EQ(raw.exchange(upgrade_request()).status, 101);
  WsClient client(std::move(raw));
  expect_echo(client, kText, "now a socket");
}

TEST(FrontendWebSocket, UpgradesPipelinedAfterRequest) {
  TestFrontend server;
  RawClient raw(server.port);
  raw.send(get_request("/hello") + upgrade_request());
  EXPECT_EQ(raw.read_response().body, "hello");
  EXPECT_EQ(raw.read_response().status, 101);
}

TEST(FrontendWebSocket, UpgradesWithSplitHeadAndLargeCookie) {
  TestFrontend server;
  const std::string cookie = "Cookie: " + std::string(5000, 'c') + "\r\n";
  const std::string near_limit =
      "Cookie: " + std::string(8000, 'c') + "\r\nX-More: " + std::string(7900, 'm') + "\r\n";
  {
    WsClient client(server.port, cookie);
    ASSERT_EQ(client.handshake().status, 101);
    expect_echo(client, kText, "cookie");
  }
  {
    WsClient client(server.port, near_limit);
    ASSERT_EQ(client.handshake().status, 101);
    expect_echo(client, kText, "near the limit");
  }
  {
    RawClient raw(server.port);
    for (const char byte : upgrade_request()) {
      raw.send({&byte, 1});
      wait_until_input_handled(server.port);
    }
    EXPECT_EQ(raw.read_response().status, 101);
  }
  {
    RawClient raw(server.port);
    const std::string request = upgrade_request("/api/v1/live", cookie);
    raw.send(request.substr(0, 3000));
    wait_until_input_handled(server.port);
    raw.send(request.substr(3000));
    EXPECT_EQ(raw.read_response().status, 101);
    WsClient client(std::move(raw));
    expect_echo(client, kText, "two packets");
  }
}

TEST(FrontendWebSocket, EveryUpgradeResponseHasRequestId) {
  HttpFrontendOptions options;
  options.max_websockets = 1;
  TestFrontend server(options);
  const auto id_of = [](const RawResponse& answer) {
    const auto found = answer.headers.find("x-request-id");
    return found == answer.headers.end() ? std::string("none") : found->second;
  };
  const WsClient first(server.port);
  EXPECT_EQ(first.handshake().status, 101);
  server.recorder.wait_for_open();
  EXPECT_EQ(id_of(first.handshake()), server.recorder.upgrade(0).request_id);
  EXPECT_EQ(id_of(first.handshake()).size(), 16u);
  const std::string own = "X-Request-Id: " + std::string(64, 'm') + "\r\n";
  const auto upgrade = [&](const std::string& headers) {
    return RawClient(server.port).exchange(upgrade_request("/api/v1/live", own + headers));
  };
  const RawResponse full = upgrade("");
  EXPECT_EQ(full.status, 503);
  EXPECT_EQ(id_of(full), std::string(64, 'm'));
  const RawResponse foreign = upgrade("Origin: http://evil.example\r\n");
  EXPECT_EQ(foreign.status, 403);
  EXPECT_EQ(id_of(foreign), std::string(64, 'm'));
}

TEST(FrontendWebSocket, CloseHandshakeFromEitherSide) {
  TestFrontend server;
  WsClient client(server.port);
  const ClientId id = server.recorder.wait_for_open();
  client.send(kClose, "\x03\xe8");
  EXPECT_EQ(client.read().opcode, kClose);
  EXPECT_TRUE(client.raw().closed_within(20s));
  EXPECT_TRUE(wait_until([&] { return server.recorder.closed == 1; }));
  EXPECT_FALSE(server.frontend.send(id, "gone"));
  EXPECT_FALSE(server.frontend.stats(id).has_value());

  WsClient other(server.port);
  const ClientId other_id = server.recorder.wait_for_open(1);
  EXPECT_TRUE(server.frontend.send(other_id, "last words"));
  server.frontend.close(other_id, 4001);
  EXPECT_FALSE(server.frontend.send(other_id, "too late"));
  EXPECT_EQ(other.read().payload, "last words");
  EXPECT_EQ(other.expect_close(), 4001);
  EXPECT_TRUE(wait_until([&] { return server.recorder.closed == 2; }));
}

TEST(FrontendWebSocket, ClosesOnProtocolViolation) {
  HttpFrontendOptions options;
  options.websocket_message_bytes = 1000;
  TestFrontend server(options);
  {
    WsClient client(server.port);
    client.send(kBinary, std::string(1001, 'x'));
    EXPECT_EQ(client.expect_close(), 1009);
  }
  {
    WsClient client(server.port);
    for (int i = 0; i < 11; ++i)
      client.send(i == 0 ? kBinary : kContinuation, std::string(100, 'x'), false);
    EXPECT_EQ(client.expect_close(), 1009);
  }
  {
    WsClient client(server.port);
    client.send(kText, "\xff\xfe");
    EXPECT_EQ(client.expect_close(), 1007);
  }
  {
    WsClient client(server.port);
    client.raw().send("GET / HTTP/1.1\r\n\r\n");  // not a frame
    EXPECT_EQ(client.expect_close(), 1002);
  }
  EXPECT_TRUE(wait_until([&] { return server.recorder.closed == 4; }));
}

TEST(FrontendWebSocket, DeliversInOrderFromManyThreads) {
  TestFrontend server;
  WsClient client(server.port);
  const ClientId id = server.recorder.wait_for_open();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 500; ++i) {
        EXPECT_TRUE(server.frontend.send(id, std::to_string(thread) + ":" + std::to_string(i)));
      }
    });
  }
  int next[4] = {};
  for (int i = 0; i < 2000; ++i) {
    const WsFrame frame = client.read();
    ASSERT_EQ(frame.opcode, kText);
    const int thread = frame.payload.at(0) - '0';
    EXPECT_EQ(frame.payload.substr(2), std::to_string(next[thread]++));
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(server.frontend.stats(id)->sent, 2000u);
  EXPECT_EQ(server.frontend.stats(id)->lost, 0u);
}

TEST(FrontendWebSocket, FramesBeyondTheQueueAreDroppedAndCounted) {
  HttpFrontendOptions options;
  options.websocket_queue_bytes = 1 << 20;
  TestFrontend server(options);
  WsClient stuck(server.port, "", 4096);
  const ClientId stuck_id = server.recorder.wait_for_open();
  WsClient good(server.port);
  const ClientId good_id = server.recorder.wait_for_open(1);

  const std::string frame(100'000, 'f');
  std::size_t queued = 0;
  std::size_t most = 0;
  for (int i = 0; i < 400; ++i) {
    queued += server.frontend.send(stuck_id, frame) ? 1u : 0u;
    most = std::max(most, server.frontend.stats(stuck_id)->queued_bytes);
    // Another client is not affected.
    ASSERT_TRUE(server.frontend.send(good_id, "tick"));
    ASSERT_EQ(good.read().payload, "tick");
  }
  const ClientStats stats = *server.frontend.stats(stuck_id);
  EXPECT_EQ(stats.lost + queued, 400u);
  EXPECT_GT(stats.lost, 200u);
  EXPECT_LE(most, options.websocket_queue_bytes);
  // The queued frames arrive complete once the client reads.
  for (std::size_t i = 0; i < queued; ++i) {
    ASSERT_EQ(stuck.read().payload.size(), frame.size()) << i;
  }
  EXPECT_EQ(server.frontend.stats(stuck_id)->queued_bytes, 0u);
  EXPECT_TRUE(server.frontend.send(stuck_id, "again"));
  EXPECT_EQ(stuck.read().payload, "again");
}

TEST(FrontendWebSocket, FrameLargerThanQueueIsDropped) {
  HttpFrontendOptions options;
  options.websocket_queue_bytes = 10'000;
  TestFrontend server(options);
  WsClient client(server.port);
  const ClientId id = server.recorder.wait_for_open();
  EXPECT_FALSE(server.frontend.send(id, std::string(10'001, 'x')));
  EXPECT_EQ(server.frontend.stats(id)->lost, 1u);
  EXPECT_TRUE(server.frontend.send(id, "fits"));
  EXPECT_EQ(client.read().payload, "fits");
}

TEST(FrontendWebSocket, NumberOfWebSocketsIsLimited) {
  HttpFrontendOptions options;
  options.max_websockets = 3;
  TestFrontend server(options);
  std::vector<WsClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port);
    EXPECT_EQ(clients.back().handshake().status, 101);
  }
  EXPECT_EQ(WsClient(server.port).handshake().status, 503);
  clients.pop_back();
  EXPECT_TRUE(wait_until([&] { return WsClient(server.port).handshake().status == 101; }));
}

TEST(FrontendWebSocket, WebSocketsPerPeerAreLimited) {
  HttpFrontendOptions options;
  options.max_websockets = 4;
  options.max_websockets_per_peer = 2;
  TestFrontend server(options);
  std::vector<WsClient> clients;
  for (int i = 0; i < 2; ++i) clients.emplace_back(server.port);
  const WsClient rejected(server.port);
  EXPECT_EQ(rejected.handshake().status, 503);
  EXPECT_EQ(rejected.handshake().headers.at("retry-after"), "2");
  RawClient other = RawClient::from("127.0.0.2", server.port);
  EXPECT_EQ(other.exchange(upgrade_request()).status, 101);
  clients.pop_back();
  EXPECT_TRUE(wait_until([&] { return WsClient(server.port).handshake().status == 101; }));
}

TEST(FrontendWebSocket, PausedClientIsNotReadAndLosesNothing) {
  TestFrontend server;
  server.recorder.pause = 50ms;
  WsClient client(server.port);
  const ClientId id = server.recorder.wait_for_open();
  // In one packet, so that libwebsockets has read all of them when the first is handled.
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 6; ++i) client.send(kText, std::to_string(i));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(client.read().payload, std::to_string(i));
  EXPECT_GE(std::chrono::steady_clock::now() - began,
            250ms);  // one pause after each message but the last
  // From another thread; a shorter pause does not end a longer one.
  server.recorder.pause = 0ms;
  const auto then = std::chrono::steady_clock::now();
  server.frontend.pause(id, 400ms);
  server.frontend.pause(id, 1ms);
  server.frontend.send(id, "paused");  // sent after the pauses have begun
  EXPECT_EQ(client.read().payload, "paused");
  expect_echo(client, kText, std::string(200'000, 'x'));
  EXPECT_GE(std::chrono::steady_clock::now() - then, 400ms);
  // A disconnect is noticed immediately, also with unread messages.
  {
    WsClient leaver(server.port);
    const ClientId leaving = server.recorder.wait_for_open(1);
    server.frontend.pause(leaving, 60s);
    server.frontend.send(leaving, "paused");
    EXPECT_EQ(leaver.read().payload, "paused");
    for (int i = 0; i < 1000; ++i) leaver.send(kText, std::string(100, 'x'));
  }
  EXPECT_TRUE(wait_until([&] { return server.recorder.closed == 1; }));
  // A paused client still receives messages and can be closed.
  server.frontend.pause(id, 60s);
  server.frontend.send(id, "news");
  EXPECT_EQ(client.read().payload, "news");
  server.frontend.close(id, 1008);
  EXPECT_EQ(client.read().opcode, kClose);
  client.raw().reset();
  EXPECT_TRUE(wait_until([&] { return server.recorder.closed == 2; }));
}

TEST(FrontendWebSocket, ConcurrentUpgrades) {
  HttpFrontendOptions options;
  options.max_websockets_per_peer = options.max_websockets;
  TestFrontend server(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 60; ++i) clients.emplace_back(server.port);
  for (auto& client : clients) client.send(upgrade_request());
  for (auto& client : clients) EXPECT_EQ(client.read_response().status, 101);
}

TEST(FrontendWebSocket, UnresponsivePeerIsPingedAndDropped) {
  HttpFrontendOptions options;
  options.websocket_ping_interval = 1s;
  TestFrontend server(options);
  WsClient client(server.port);
  const ClientId id = server.recorder.wait_for_open();
  EXPECT_EQ(client.read().opcode, kPing);  // not answered with a pong
  EXPECT_TRUE(wait_until([&] { return server.recorder.closed == 1; }));
  EXPECT_FALSE(server.frontend.send(id, "gone"));
}

TEST(FrontendWebSocket, StopFlushesQueueAndSendsClose) {
  TestFrontend server;
  WsClient client(server.port);
  WsClient stuck(server.port, "", 4096);
  const ClientId id = server.recorder.wait_for_open(0);
  const ClientId stuck_id = server.recorder.wait_for_open(1);
  for (int i = 0; i < 30; ++i) server.frontend.send(stuck_id, std::string(100'000, 'x'));
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(server.frontend.send(id, "frame " + std::to_string(i)));
  std::thread reader([&] {
    for (int i = 0; i < 50; ++i) EXPECT_EQ(client.read().payload, "frame " + std::to_string(i));
    EXPECT_EQ(client.expect_close(), 1001);
    EXPECT_TRUE(client.raw().closed_within(20s));
  });
  const auto start = FairClock::now();
  server.frontend.stop(1s);
  EXPECT_LT(FairClock::now() - start, 15s);
  reader.join();
  EXPECT_EQ(server.recorder.closed, 2u);
  EXPECT_FALSE(server.frontend.send(id, "after the end"));
}

TEST(FrontendWebSocket, LibrariesPrintNothing) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  {
    TestFrontend server;
    WsClient client(server.port);
    client.send(kText, "\xff");
    client.expect_close();
    RawClient raw(server.port);
    raw.send("\x16\x03\x01 nonsense\r\n\r\n");
    EXPECT_EQ(raw.read_response().status, 400);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST(FrontendWebSocket, ReconnectsLeakNoDescriptors) {
  const std::size_t before = open_descriptors();
  {
    TestFrontend server;
    {
      WsClient first(server.port);
    }
    EXPECT_TRUE(wait_until([&] { return server.recorder.closed == 1; }));
    const std::size_t running = open_descriptors();
    for (int i = 0; i < 300; ++i) {
      WsClient client(server.port);
      ASSERT_EQ(client.handshake().status, 101) << i;
      if (i % 3 == 0) expect_echo(client, kText, "hi");
      if (i % 3 == 1) client.raw().reset();
    }
    EXPECT_TRUE(wait_until([&] { return server.recorder.closed == 301; }));
    EXPECT_TRUE(wait_until([&] { return open_descriptors() <= running; }));
  }
  EXPECT_LE(open_descriptors(), before + kLeakedDescriptors);
}

}  // namespace
}  // namespace tt::test
