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

// cpp-httplib alone accepts some of these sizes, and another program may read them differently.
TEST(FrontendInvalidRequests, RejectsInvalidChunks) {
  using namespace std::string_literals;
  TestFrontend server;
  const std::string inner = get_request("/hello");
  const std::string last = "\r\nhello\r\n0\r\n\r\n";
  const std::string bodies[] = {
      "+5" + last,
      "-5" + last,
      "-0\r\n\r\n",
      "0x5" + last,
      "5h" + last,
      "zz" + last,
      " 5" + last,
      "\t5" + last,
      "5 " + last,
      "5 ;a=b" + last,
      "\0"s + "5" + last,
      "5\0"s + last,
      "\v5" + last,
      "" + last,
      ";a=b" + last,
      "ffffffffffffffffff" + last,
      "10000000000000005" + last,
      "00000000000000005" + last,
      "5\nhello\n0\n\n",
      "5\rhello",
      "5\r\nhelloXX0\r\n\r\n",
      "5\r\nhello\n0\r\n\r\n",
      "5\r\nhello\r\n\r\n",
      "5\r\nhello\r\n0\n\n",
      "5;a=\0"s + last,
      "5;a=b\n" + last,
      "5;" + std::string(257, 'x') + last,
      "5\r\nhello\r\n0\r\nX: 1\n\r\n",
      "5\r\nhello\r\n0\r\nX: " + std::string(9000, 'x') + "\r\n\r\n",
      "5\r\nhello\r\nfffffffffffffffb\r\nhello",  // the sum overflows
  };
  for (const std::string& body : bodies) {
    RawClient client(server.port);
    client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
                body + inner);
    client.shutdown_write();
    EXPECT_EQ(client.read_response().status, 400) << body;
    EXPECT_EQ(client.read_response().status, 0) << body;
  }
}

TEST(FrontendInvalidRequests, AcceptsValidChunks) {
  TestFrontend server;
  RawClient client(server.port);
  const std::string bodies[] = {
      "5\r\nhello\r\n0\r\n\r\n",
      "0000000000000005\r\nhello\r\n000\r\n\r\n",
      "1\r\nh\r\n4\r\nello\r\n0\r\n\r\n",
      "5;name=value;other=\"quoted text\"\r\nhello\r\n0;last\r\n\r\n",
      "5;" + std::string(250, 'x') + "\r\nhello\r\n0\r\n\r\n",
      "5\r\nhello\r\n0\r\nX-Trailer: 1\r\nX-Other: 2\r\n\r\n",
  };
  for (const std::string& body : bodies) {
    const RawResponse response = client.exchange(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + body);
    EXPECT_EQ(response.status, 200) << body;
    EXPECT_EQ(response.body, "hello") << body;
  }
  std::string long_body;
  for (int i = 0; i < 26; ++i) long_body += "A\r\n0123456789\r\n";
  EXPECT_EQ(client
                .exchange("POST /echo HTTP/1.1\r\nHost: localhost\r\n"
                          "Transfer-Encoding: chunked\r\n\r\n" +
                          long_body + "0\r\n\r\n")
                .body.size(),
            260U);
}

TEST(FrontendInvalidRequests, RejectsUnknownExpectation) {
  HttpFrontendOptions options;
  options.body_timeout = 300ms;  // the body is not sent
  TestFrontend server(options);
  RawClient client(server.port);
  const auto response = client.exchange(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 200-maybe\r\n\r\n");
  EXPECT_TRUE(response.status == 417 || response.status == 0 || response.status == 408 ||
              response.status == 400)
      << response.status;
}

}  // namespace
}  // namespace tt::test
