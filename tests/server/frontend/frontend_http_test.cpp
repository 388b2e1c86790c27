// Plain HTTP through the front end, with requests split in any way.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/frontend/raw_client.h"
#include "tests/server/frontend/test_frontend.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

// Clients of proxies, and old ones: curl -x, HTTP/1.0.
TEST(FrontendHttp, AnswersEveryFormOfARequest) {
  TestFrontend server;
  for (const std::string request :
       {"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /hello HTTP/1.0\r\n\r\n",
        "GET http://localhost/hello HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET http://127.0.0.1/hello?a=b HTTP/1.0\r\n\r\n"})
    EXPECT_EQ(RawClient(server.port).exchange(request).status, 200) << request;
}

TEST(FrontendHttp, ServesPlainRequests) {
  TestFrontend server;
  RawClient client(server.port);
  const auto hello = client.exchange(get_request("/hello"));
  EXPECT_EQ(hello.status, 200);
  EXPECT_EQ(hello.body, "hello");
  const auto unknown = client.exchange(get_request("/unknown"));
  EXPECT_EQ(unknown.status, 404);
  // cpp-httplib closes the connection after an error.
  EXPECT_EQ(unknown.headers.at("connection"), "close");
  EXPECT_TRUE(client.closed_within(20s));
}

TEST(FrontendHttp, HeadResponseHasNoBody) {
  TestFrontend server;
  RawClient client(server.port);
  client.send("HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto head = client.read_response("HEAD");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), "5");
  EXPECT_EQ(client.exchange(get_request("/hello")).body, "hello");
}

TEST(FrontendHttp, KeepsConnectionAliveForManyRequests) {
  TestFrontend server;
  RawClient client(server.port);
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(client.exchange(get_request("/hello")).body, "hello") << i;
  }
}

TEST(FrontendHttp, KeepsConnectionAliveAfterRequestWithoutBody) {
  TestFrontend server;
  RawClient client(server.port);
  for (int i = 0; i < 3; ++i) {
    const RawResponse response =
        client.exchange("DELETE /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "gone") << i;
  }
}

TEST(FrontendHttp, ServesPipelinedRequestsInOrder) {
  TestFrontend server;
  RawClient client(server.port);
  std::string all;
  for (int i = 0; i < 20; ++i) {
    const std::string body = "body " + std::to_string(i);
    all += get_request("/hello");
    all +=
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
  }
  client.send(all);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(client.read_response().body, "hello");
    ASSERT_EQ(client.read_response().body, "body " + std::to_string(i));
  }
}

TEST(FrontendHttp, ClosesOnConnectionClose) {
  TestFrontend server;
  for (const char* header : {"Connection: close\r\n", "Connection: Close, x\r\n"}) {
    RawClient client(server.port);
    const auto response = client.exchange(get_request("/hello", header));
    EXPECT_EQ(response.body, "hello");
    EXPECT_EQ(response.headers.at("connection"), "close");
    EXPECT_TRUE(client.closed_within(20s));
  }
}

TEST(FrontendHttp, ServesHalfClosedClient) {
  TestFrontend server;
  RawClient client(server.port);
  client.send(get_request("/hello"));
  client.shutdown_write();
  EXPECT_EQ(client.read_response().body, "hello");
  EXPECT_TRUE(client.closed_within(20s));
}

TEST(FrontendHttp, AcceptsHeadByteByByte) {
  TestFrontend server;
  RawClient client(server.port);
  for (const char byte : get_request("/hello", "Accept: text/plain\r\n")) {
    client.send({&byte, 1});
    wait_until_input_handled(server.port);
  }
  EXPECT_EQ(client.read_response().body, "hello");
}

TEST(FrontendHttp, AcceptsHeadSplitAtAnyByte) {
  TestFrontend server;
  const std::string request = get_request("/hello");
  RawClient client(server.port);
  for (std::size_t at = 1; at < request.size(); ++at) {
    client.send(request.substr(0, at));
    wait_until_input_handled(server.port);
    client.send(request.substr(at));
    ASSERT_EQ(client.read_response().body, "hello") << at;
  }
}

TEST(FrontendHttp, AcceptsLargeHeaders) {
  TestFrontend server;
  RawClient client(server.port);
  const std::string one = "X-Long: " + std::string(5000, 'c') + "\r\n";
  EXPECT_EQ(client.exchange(get_request("/header", one)).body, "5000");
  const std::string cookie = "Cookie: a=" + std::string(5000, 'c') + "\r\n";
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(client.exchange(get_request("/hello", cookie)).body, "hello");
  // Just below the limit of 16 KiB, in two headers.
  const std::string two =
      "X-Long: " + std::string(8000, 'c') + "\r\nX-More: " + std::string(8000, 'm') + "\r\n";
  EXPECT_EQ(client.exchange(get_request("/header", two)).body, "8000");
}

TEST(FrontendHttp, ReadsBodiesSplitAcrossPackets) {
  TestFrontend server;
  RawClient client(server.port);
  const std::string body(300'000, 'p');
  const std::string head =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n";
  client.send(head);
  for (std::size_t at = 0; at < body.size(); at += 50'000) {
    EXPECT_TRUE(wait_until([&] { return client.peer_has_read_all(); }));
    client.send(body.substr(at, 50'000));
  }
  EXPECT_EQ(client.read_response().body, body);

  client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.send("5\r\nhello\r\n");
  EXPECT_TRUE(wait_until([&] { return client.peer_has_read_all(); }));
  // The next request is in the same packet as the last chunk.
  client.send("6\r\n world\r\n0\r\n\r\n" + get_request("/hello"));
  EXPECT_EQ(client.read_response().body, "hello world");
  EXPECT_EQ(client.read_response().body, "hello");
}

// Requests sent in advance, in pieces of `piece` bytes, while the responses are read.
void expect_pipelined(std::uint16_t port,
                      const std::vector<std::pair<std::string, std::string>>& each,
                      std::size_t count, std::size_t piece, std::chrono::microseconds read_pause) {
  RawClient client(port);
  std::jthread sender([&] {
    std::string requests;
    for (std::size_t i = 0; i < count; ++i) {
      requests += each[i % each.size()].first;
      while (requests.size() >= piece || (i + 1 == count && !requests.empty())) {
        client.send(std::string_view(requests).substr(0, piece));
        requests.erase(0, piece);
      }
    }
  });
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 16 == 0 && read_pause.count() > 0) std::this_thread::sleep_for(read_pause);
    const RawResponse response = client.read_response();
    if (response.status != 200) client.reset();  // the sender may be waiting
    ASSERT_EQ(response.status, 200) << "response " << i;
    ASSERT_EQ(response.body, each[i % each.size()].second) << "response " << i;
  }
}

// The last bytes of a packet were an incomplete head, in a packet that filled the receive buffer:
// the rest could not arrive, and the connection was silent after some 3,000 requests.
TEST(FrontendHttp, AnswersTwentyThousandPipelinedRequests) {
  TestFrontend server;
  const std::string get = get_request("/hello");
  const std::string post =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody";
  const std::string chunked =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "6\r\nchunks\r\n0\r\n\r\n";
  expect_pipelined(server.port, {{get, "hello"}}, 20'000, 64 << 10, 0us);
  const std::vector<std::pair<std::string, std::string>> mixed = {
      {get, "hello"},
      {post, "body"},
      {chunked, "chunks"},
      {get_request("/hello", "X: 1\r\n"), "hello"}};
  expect_pipelined(server.port, mixed, 8'000, 1U << 20, 0us);
  expect_pipelined(server.port, mixed, 4'000, 1'000'000, 500us);  // reads slowly
  expect_pipelined(server.port, mixed, 1'000, 7, 0us);
}

TEST(FrontendHttp, SendsContinueForExpectContinue) {
  TestFrontend server;
  RawClient client(server.port);
  client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");
  EXPECT_EQ(client.read_response().body, "body");
  EXPECT_EQ(client.exchange(get_request("/hello")).body, "hello");
}

TEST(FrontendHttp, BodyOfRejectedRequestIsNotParsedAsRequest) {
  TestFrontend server;
  // Rejected by the front end, by cpp-httplib before routing, and after routing.
  const char* heads[] = {
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nbad line\r\n",
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nAccept: ;;q=nonsense\r\n",
      "POST /none HTTP/1.1\r\nHost: localhost\r\n",
      "MADEUP /echo HTTP/1.1\r\nHost: localhost\r\n",
  };
  for (const char* head : heads) {
    const std::string inner = get_request("/hello");
    RawClient client(server.port);
    const auto response = client.exchange(
        head + ("Content-Length: " + std::to_string(inner.size()) + "\r\n\r\n") + inner);
    EXPECT_GE(response.status, 400) << head;
    EXPECT_EQ(client.read_response().status, 0) << head;
  }
}

TEST(FrontendHttp, RequestIsCountedBeforeResponseIsSent) {
  std::mutex mutex;
  std::map<int, int> counted;  // by status
  HttpFrontendOptions options;
  options.on_status = [&](const RequestRecord& answered) {
    const std::scoped_lock lock(mutex);
    ++counted[answered.status];
  };
  TestFrontend server(options);
  const struct {
    std::string request;
    int status;
  } cases[] = {
      {get_request("/hello"), 200},  {get_request("/big"), 200},
      {get_request("/stream"), 200}, {get_request("/nothing"), 404},
      {"nonsense\r\n\r\n", 400},     {"GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
  };
  std::map<int, int> expected;
  for (int round = 0; round < 50; ++round) {
    for (const auto& [request, status] : cases) {
      RawClient client(server.port);
      client.send(request);
      const std::string first_byte = client.read(1);
      ASSERT_EQ(first_byte, "H");
      ++expected[status];
      const std::scoped_lock lock(mutex);
      ASSERT_EQ(counted, expected) << request;
    }
  }
}

TEST(FrontendHttp, StreamEndsWhenClientDisconnects) {
  TestFrontend server;
  {
    RawClient client(server.port);
    client.send(get_request("/stream"));
    const std::string start = client.read(2000);
    EXPECT_TRUE(start.contains("data: tick\n\n"));
    EXPECT_EQ(server.streams, 1);
  }
  EXPECT_TRUE(wait_until([&] { return server.streams == 0; }));
}

TEST(FrontendHttp, WritesLargeResponsesToSlowReaders) {
  TestFrontend server;
  RawClient client(server.port, 4096);
  client.send(get_request("/big"));
  EXPECT_TRUE(wait_until([&] { return client.unread_bytes() > 0; }));
  EXPECT_EQ(client.read_response().body.size(), 8u << 20);
}

TEST(FrontendHttp, RejectsForeignHostsAndOrigins) {
  TestFrontend server;
  const struct {
    std::string request;
    int status;
  } cases[] = {
      {"GET /hello HTTP/1.1\r\nHost: rebound.example\r\n\r\n", 403},
      {"GET /hello HTTP/1.1\r\n\r\n", 400},
      {"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n"
       "Content-Length: 2\r\n\r\n{}",
       403},
      {"DELETE /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: null\r\n\r\n", 403},
      {upgrade_request("/api/v1/live", "Origin: http://evil.example\r\n"), 403},
      {upgrade_request("/elsewhere"), 404},
  };
  for (const auto& [request, status] : cases) {
    RawClient client(server.port);
    EXPECT_EQ(client.exchange(request).status, status) << request;
    EXPECT_TRUE(client.closed_within(20s));
  }
  EXPECT_EQ(server.recorder.open_count(), 0u);
}

TEST(FrontendHttp, WorksWithNodeClient) {
  TestFrontend server;
  const std::string command = "node " + source_path("tests/server/frontend/node_client.mjs") + " " +
                              std::to_string(server.port) + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  char line[256];
  while (fgets(line, sizeof(line), pipe) != nullptr) output += line;
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_EQ(output, "ok\n");
  EXPECT_EQ(server.recorder.upgrade(0).query, "from=node");
}

}  // namespace
}  // namespace tt::test
