// Requests that are too large, ambiguous or malformed.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/server/frontend/raw_client.h"
#include "tests/server/frontend/test_frontend.h"

namespace tt::test {
namespace {

TEST(FrontendInvalidRequests, RejectsHeadOver16KiB) {
  TestFrontend server;
  for (const bool whole : {true, false}) {
    RawClient client(server.port);
    std::string head = get_request("/hello");
    head.resize(head.size() - 2);
    for (int i = 0; i < 3; ++i)
      head += "X-" + std::to_string(i) + ": " + std::string(6000, 'x') + "\r\n";
    if (whole) head += "\r\n";
    EXPECT_EQ(client.exchange(head).status, 431);
    EXPECT_TRUE(client.closed_within(20s));
  }
}

TEST(FrontendInvalidRequests, RejectionIsDeliveredWithUnreadInput) {
  TestFrontend server;
  RawClient client(server.port);
  client.send(std::string(1 << 20, 'x'));
  EXPECT_EQ(client.read_response().status, 431);
}

TEST(FrontendInvalidRequests, ExcessiveHeadersAreRejectedOrHarmless) {
  TestFrontend server;
  const auto many = [](int count, const std::string& line) {
    std::string out;
    for (int i = 0; i < count; ++i) out += line;
    return out;
  };
  const std::pair<std::string, int> requests[] = {
      {get_request("/hello", many(101, "A: 1\r\n")), 431},
      {get_request("/hello", many(98, "A: 1\r\n")), 200},
      {get_request("/hello", "A: " + std::string(8200, 'x') + "\r\n"), 431},
      {get_request("/hello", std::string(8200, 'A') + ": x\r\n"), 431},
      {get_request("/" + std::string(17'000, 'x')), 431},
      {get_request("/hello", "Cookie: " + many(2000, "a=b;") + "\r\n"), 200},
      {get_request("/hello", "Cookie: " + many(600, "tt_session=;") + "\r\n"), 200},
      {get_request("/hello", "Accept: " + many(4000, "a,") + "\r\n"), 400},
      {get_request("/hello", "Connection: " + many(4000, ",") + "\r\n"), 200},
      {get_request("/hello?" + many(3000, "a&")), 200},
  };
  for (const auto& [request, status] : requests) {
    EXPECT_EQ(RawClient(server.port).exchange(request).status, status) << request.substr(0, 60);
  }
}

// The boundary between two requests must be unambiguous (request smuggling).
TEST(FrontendInvalidRequests, RejectsAmbiguousBodyLengths) {
  TestFrontend server;
  const std::string inner = get_request("/hello");
  const std::string cases[] = {
      "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
      "Transfer-Encoding: identity, chunked\r\n",
      "Transfer-Encoding: xchunked\r\n",
      "Transfer-Encoding:\r\n",
      "Content-Length: 3\r\nContent-Length: 0\r\n",
      "Content-Length: 0x3\r\n",
      "Content-Length: -1\r\n",
      "Content-Length: 3 3\r\n",
      "Content-Length:\r\n",
      "Transfer-Encoding : chunked\r\n",
      "Transfer-Encoding\t: chunked\r\n",
      "X: 1\r\n Transfer-Encoding: chunked\r\n",
      "X: 1\nTransfer-Encoding: chunked\r\n",
      "X: 1\rTransfer-Encoding: chunked\r\n",
  };
  for (const std::string& lines : cases) {
    RawClient client(server.port);
    client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\n" + lines + "\r\n0\r\n\r\n" + inner);
    EXPECT_EQ(client.read_response().status, 400) << lines;
    EXPECT_EQ(client.read_response().status, 0) << lines;
  }
}

TEST(FrontendInvalidRequests, InvalidChunksCloseTheConnection) {
  TestFrontend server;
  const std::string inner = get_request("/hello");
  const std::string bodies[] = {
      "zz\r\nhello\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n",
      "5\r\nhelloXX0\r\n\r\n",    "ffffffffffffffffff\r\nhello\r\n0\r\n\r\n",
      "5\nhello\n0\n\n",          "5\r\nhello\r\n\r\n",
  };
  for (const std::string& body : bodies) {
    RawClient client(server.port);
    client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
                body + inner);
    client.shutdown_write();
    const RawResponse first = client.read_response();
    EXPECT_TRUE(first.status == 0 || first.status >= 400) << body << first.status << first.body;
    EXPECT_EQ(client.read_response().status, 0) << body;
  }
}

TEST(FrontendInvalidRequests, RejectsUnknownExpectation) {
  TestFrontend server;
  RawClient client(server.port);
  const auto response = client.exchange(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 200-maybe\r\n\r\n");
  EXPECT_TRUE(response.status == 417 || response.status == 0 || response.status == 408 ||
              response.status == 400)
      << response.status;
}

}  // namespace
}  // namespace tt::test
