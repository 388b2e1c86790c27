// Authenticator control over real sockets: the key, the login link, the cookie, the security
// headers of every response, pages of other sites.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <set>
#include <string>
#include <vector>

#include "server/frontend/origin_policy.h"
#include "tests/server/frontend/raw_client.h"
#include "tests/server/frontend/test_frontend.h"

namespace tt::test {
namespace {

constexpr const char* kKey = "a-key-of-some-length";
const std::string kBearer = std::string("Authorization: Bearer ") + kKey + "\r\n";

HttpFrontendOptions with_key() {
  HttpFrontendOptions options;
  options.key = kKey;
  return options;
}

RawResponse exchange_once(std::uint16_t port, const std::string& request) {
  return RawClient(port).exchange(request);
}

// The cookie of a login, as a browser sends it back.
std::string log_in(TestFrontend& server) {
  const RawResponse response =
      exchange_once(server.port, get_request(server.frontend.make_login_path()));
  EXPECT_EQ(response.status, 200);
  const std::string& cookie = response.headers.at("set-cookie");
  return "Cookie: " + cookie.substr(0, cookie.find(';')) + "\r\n";
}

TEST(FrontendAccess, WithoutKeyOnlyHealthIsServed) {
  TestFrontend server(with_key());
  for (const char* method : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}) {
    for (const char* path : {"/", "/hello", "/stream", "/echo", "/none", "/api/v1/live"}) {
      const std::string request =
          std::string(method) + " " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
      RawClient client(server.port);
      client.send(request);
      const RawResponse response = client.read_response(method);
      EXPECT_EQ(response.status, 401) << request;
      EXPECT_EQ(response.headers.at("www-authenticate"), "Bearer realm=\"tensor-trace\"");
      EXPECT_TRUE(client.closed_within(20s));
    }
  }
  EXPECT_EQ(exchange_once(server.port, upgrade_request()).status, 401);
  EXPECT_EQ(server.recorder.open_count(), 0u);
  EXPECT_EQ(server.streams, 0);
  EXPECT_EQ(exchange_once(server.port, get_request("/api/v1/health")).body, "well");
  EXPECT_EQ(exchange_once(server.port, get_request("/api/v1/health", "TT-Stranger: \r\n")).body,
            "well");
}

TEST(FrontendAccess, BodyOfUnauthenticatedRequestIsNotParsedAsRequest) {
  TestFrontend server(with_key());
  const std::string inner = get_request("/hello", kBearer);
  RawClient client(server.port);
  const auto response = client.exchange(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: " +
      std::to_string(inner.size()) + "\r\n\r\n" + inner);
  EXPECT_EQ(response.status, 401);
  EXPECT_EQ(client.read_response().status, 0);
}

TEST(FrontendAccess, BearerKeyGrantsAccess) {
  TestFrontend server(with_key());
  RawClient client(server.port);
  EXPECT_EQ(client.exchange(get_request("/hello", kBearer)).body, "hello");
  EXPECT_EQ(client.exchange(get_request("/api/v1/health", kBearer)).body, "well, and much more");
  EXPECT_EQ(client.exchange(get_request("/api/v1/health", kBearer + "TT-Stranger: 1\r\n")).body,
            "well, and much more");
  // Each request needs the key, also on a connection that was already authenticated.
  EXPECT_EQ(client.exchange(get_request("/hello")).status, 401);
  WsClient socket(server.port, kBearer);
  EXPECT_EQ(socket.handshake().status, 101);
  EXPECT_EQ(WsClient(server.port, "Authorization: Bearer a-key\r\n").handshake().status, 401);
}

TEST(FrontendAccess, LoginLinkIsSingleUse) {
  TestFrontend server(with_key());
  const std::string path = server.frontend.make_login_path();
  const RawResponse first = exchange_once(server.port, get_request(path));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.headers.at("refresh"), "0; url=./");
  EXPECT_EQ(first.headers.at("cache-control"), "no-store");
  EXPECT_EQ(exchange_once(server.port, get_request(path)).status, 401);

  const std::string cookie = log_in(server);
  EXPECT_EQ(exchange_once(server.port, get_request("/hello", cookie)).body, "hello");
  EXPECT_EQ(WsClient(server.port, cookie + "Origin: http://127.0.0.1\r\n").handshake().status, 101);
  EXPECT_EQ(WsClient(server.port, cookie + "Origin: http://evil.example\r\n").handshake().status,
            403);
  EXPECT_EQ(WsClient(server.port, "Origin: http://127.0.0.1\r\n").handshake().status, 401);
}

TEST(FrontendAccess, CredentialsAreRemovedBeforeHandlers) {
  TestFrontend server(with_key());
  const std::string cookie = log_in(server);
  const std::string seen =
      exchange_once(server.port, get_request("/seen", kBearer + cookie + "X-Other: 1\r\n")).body;
  EXPECT_TRUE(seen.contains("X-Other\n")) << seen;
  EXPECT_FALSE(seen.contains("Authorization")) << seen;
  EXPECT_FALSE(seen.contains("Cookie")) << seen;
  const std::size_t before = server.recorder.open_count();
  WsClient socket(server.port, kBearer + cookie);
  server.recorder.wait_for_open(before);
  for (const auto& [name, value] : server.recorder.upgrade(before).headers) {
    EXPECT_NE(name, "Authorization");
    EXPECT_NE(name, "Cookie");
  }
}

TEST(FrontendAccess, WrongKeysAreRateLimited) {
  TestFrontend server(with_key());
  const std::string cookie = log_in(server);
  RawResponse last;
  for (int i = 0; i < 11; ++i) {
    last = exchange_once(server.port, get_request("/hello", "Authorization: Bearer wrong\r\n"));
  }
  // On a slow machine an attempt may have been regained in the meantime.
  for (int i = 0; last.status != 429 && i < 1000; ++i) {
    last = exchange_once(server.port, get_request("/hello", "Authorization: Bearer wrong\r\n"));
  }
  ASSERT_EQ(last.status, 429);
  EXPECT_GE(std::stoi(last.headers.at("retry-after")), 1);
  EXPECT_EQ(exchange_once(server.port, get_request("/hello", cookie)).status, 200);
  RawClient other = RawClient::from("127.0.0.2", server.port);
  EXPECT_EQ(other.exchange(get_request("/hello", kBearer)).status, 200);
}

// What a page of another site can make a browser send, and what a browser would never send. With
// plain HTTP to an address that is not loopback, browsers send no Sec-Fetch fields.
TEST(FrontendAccess, ForeignPagesDoNotLockOutTheRightKey) {
  TestFrontend server(with_key());
  const std::string wrong = "Authorization: Bearer wrong\r\n";
  const std::string foreign = "Origin: https://evil.example\r\n";
  const std::string cross = "Sec-Fetch-Site: cross-site\r\n";
  const std::string navigation = cross + "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
  const std::pair<std::string, int> requests[] = {
      {get_request("/login?code=guess"), 401},  // an image
      {get_request("/login?code=guess", navigation), 401},
      {get_request("/login?code=guess", cross + "Sec-Fetch-Dest: image\r\n"), 403},
      {get_request("/login?code=guess", foreign), 403},
      {get_request("/hello", navigation), 401},
      {get_request("/hello", foreign + wrong), 403},
      {get_request("/hello", "Origin: null\r\n" + wrong), 403},
      {get_request("/hello", cross + wrong), 403},
      {get_request("/hello", "Sec-Fetch-Site: same-site\r\n" + wrong), 403},
      {get_request("/hello", "Authorization: Basic d3Jvbmc6d3Jvbmc=\r\n"), 401},  // user@host
      {get_request("/hello", "Cookie: tt_session=guess\r\n"), 401},
      {upgrade_request("/api/v1/live", foreign + wrong), 403},
      {"OPTIONS /hello HTTP/1.1\r\nHost: localhost\r\n" + foreign +
           "Access-Control-Request-Method: GET\r\n"
           "Access-Control-Request-Headers: authorization\r\n\r\n",
       403},
      {"POST /echo HTTP/1.1\r\nHost: localhost\r\n" + foreign + wrong +
           "Content-Type: text/plain\r\nContent-Length: 0\r\n\r\n",
       403},
  };
  for (const auto& [request, status] : requests) {
    for (int i = 0; i < 2 * frontend::AttemptLimiter::kBurst; ++i)
      ASSERT_EQ(exchange_once(server.port, request).status, status) << request;
    ASSERT_EQ(exchange_once(server.port, get_request("/hello", kBearer)).status, 200) << request;
  }
}

// The first non-loopback IPv4 address of this machine; empty without a network.
std::string non_loopback_address() {
  ifaddrs* all = nullptr;
  getifaddrs(&all);
  std::string found;
  for (const ifaddrs* at = all; at != nullptr && found.empty(); at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    const auto* in = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
    inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
    if (!is_loopback_address(text)) found = text;
  }
  freeifaddrs(all);
  return found;
}

TEST(FrontendAccess, NonLoopbackAddressRequiresKey) {
  std::vector<std::string> hosts = {"0.0.0.0"};
  if (const std::string own = non_loopback_address(); !own.empty()) hosts.push_back(own);
  for (const std::string& host : hosts) {
    SCOPED_TRACE(host);
    TestFrontend server({}, host);
    EXPECT_TRUE(server.frontend.requires_key());
    RawClient client;
    client.connect(server.port, host == "0.0.0.0" ? "127.0.0.1" : host);
    EXPECT_EQ(client.exchange(get_request("/hello")).status, 401);
    RawClient again;
    again.connect(server.port, host == "0.0.0.0" ? "127.0.0.1" : host);
    EXPECT_EQ(again.exchange(get_request(server.frontend.make_login_path())).status, 200);
  }
}

TEST(FrontendAccess, LoopbackAddressRequiresNoKey) {
  TestFrontend server;
  EXPECT_FALSE(server.frontend.requires_key());
  EXPECT_EQ(server.frontend.make_login_path(), "");
  EXPECT_EQ(exchange_once(server.port, get_request("/api/v1/health")).body, "well, and much more");
}

TEST(FrontendAccess, EveryResponseHasSecurityHeaders) {
  TestFrontend server;
  const std::string requests[] = {
      get_request("/hello"),
      get_request("/none"),
      get_request("/stream", "Connection: close\r\n"),
      "HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "nonsense\r\n\r\n",
      get_request("/hello", "Origin: http://evil.example\r\n"),
      get_request("/hello", "Range: bytes=1-2\r\n"),
      upgrade_request("/elsewhere"),
  };
  for (const std::string& request : requests) {
    SCOPED_TRACE(request);
    server.end_streams = true;
    RawClient client(server.port);
    client.send(request);
    const std::string head = client.read_until("\r\n\r\n");
    constexpr const char* kPolicy =
        "\r\nContent-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'; object-src 'none'\r\n";
    for (const char* line : {kPolicy, "\r\nX-Content-Type-Options: nosniff\r\n",
                             "\r\nReferrer-Policy: no-referrer\r\n",
                             "\r\nCross-Origin-Resource-Policy: same-origin\r\n",
                             "\r\nCross-Origin-Opener-Policy: same-origin\r\n"}) {
      const auto at = head.find(line);
      ASSERT_NE(at, std::string::npos) << head;
      EXPECT_EQ(head.find(line, at + 1), std::string::npos) << "twice: " << line;
    }
    EXPECT_FALSE(head.contains("Access-Control-")) << head;
  }
}

TEST(FrontendAccess, PolicyNamesTheOriginsThatMayShowThePageInAFrame) {
  HttpFrontendOptions options;
  options.rules.embed_origins = {"https://wiki.example", "http://127.0.0.1:8000"};
  TestFrontend server(std::move(options));
  RawClient client(server.port);
  client.send(get_request("/hello"));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_TRUE(head.contains("; frame-ancestors https://wiki.example http://127.0.0.1:8000; "))
      << head;
  EXPECT_FALSE(head.contains("'none' https")) << head;
}

TEST(FrontendAccess, HandlerCanOverrideContentSecurityPolicy) {
  TestFrontend server;
  RawClient client(server.port);
  client.send(get_request("/own-policy"));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_TRUE(head.contains("\r\nContent-Security-Policy: default-src 'none'\r\n")) << head;
  EXPECT_FALSE(head.contains("default-src 'self'")) << head;
  EXPECT_TRUE(head.contains("\r\nX-Content-Type-Options: nosniff\r\n")) << head;
}

TEST(FrontendAccess, CompressesOnlyCompressibleTypes) {
  TestFrontend server;
  server.end_streams = true;
  const auto encoding_of = [&](const char* path, const char* accepted) {
    const RawResponse response = exchange_once(
        server.port, get_request(path, std::string("Accept-Encoding: ") + accepted + "\r\n"));
    EXPECT_EQ(response.status, 200);
    const auto at = response.headers.find("content-encoding");
    return at == response.headers.end() ? "" : at->second;
  };
  EXPECT_EQ(encoding_of("/json", "gzip"), "gzip");
  EXPECT_EQ(encoding_of("/json", "zstd"), "zstd");
  EXPECT_EQ(encoding_of("/json", "gzip, deflate, br, zstd"), "gzip");
  EXPECT_EQ(encoding_of("/json", "br"), "");
  EXPECT_EQ(encoding_of("/json", "identity"), "");
  EXPECT_EQ(encoding_of("/big", "gzip, zstd"),
            "");  // octet streams are files that are already compressed
  EXPECT_EQ(encoding_of("/stream", "gzip, zstd"), "");  // events must be delivered immediately
}

TEST(FrontendAccess, CorsAllowsOnlyConfiguredOrigins) {
  HttpFrontendOptions options = with_key();
  options.rules.cors_origins = {"https://notes.example", "http://localhost:5173"};
  TestFrontend server(options);
  for (const std::string origin : {"https://notes.example", "http://localhost:5173"}) {
    const std::string header = "Origin: " + origin + "\r\n";
    const RawResponse preflight =
        exchange_once(server.port, "OPTIONS /hello HTTP/1.1\r\nHost: localhost\r\n" + header +
                                       "Access-Control-Request-Method: DELETE\r\n"
                                       "Access-Control-Request-Headers: authorization\r\n\r\n");
    EXPECT_EQ(preflight.status, 204);
    EXPECT_EQ(preflight.headers.at("access-control-allow-origin"), origin);
    EXPECT_TRUE(preflight.headers.at("access-control-allow-methods").contains("DELETE"));
    EXPECT_TRUE(preflight.headers.at("access-control-allow-headers").contains("Authorization"));
    // A preflight does not authenticate; the page can read the rejection.
    const RawResponse without = exchange_once(server.port, get_request("/hello", header));
    EXPECT_EQ(without.status, 401);
    EXPECT_EQ(without.headers.at("access-control-allow-origin"), origin);
    const RawResponse with = exchange_once(server.port, get_request("/hello", header + kBearer));
    EXPECT_EQ(with.body, "hello");
    EXPECT_EQ(with.headers.at("access-control-allow-origin"), origin);
    EXPECT_FALSE(with.headers.contains("access-control-allow-credentials"));
    EXPECT_EQ(WsClient(server.port, header + kBearer).handshake().status, 101);
  }
  const RawResponse own = exchange_once(server.port, get_request("/hello", kBearer));
  EXPECT_EQ(own.headers.at("vary"), "Origin");
  EXPECT_FALSE(own.headers.contains("access-control-allow-origin"));
  const RawResponse foreign = exchange_once(
      server.port, get_request("/hello", kBearer + "Origin: https://evil.example\r\n"));
  EXPECT_EQ(foreign.status, 403);
  EXPECT_FALSE(foreign.headers.contains("access-control-allow-origin"));
}

TEST(FrontendAccess, RejectionsUseConfiguredRenderer) {
  HttpFrontendOptions options = with_key();
  options.renderer = [](const Rejection& refusal) {
    return RejectionBody{"text/x-rejection", std::to_string(status_of(refusal.reason))};
  };
  options.body_timeout = 200ms;
  TestFrontend server(options);
  const std::pair<std::string, int> requests[] = {
      {get_request("/hello"), 401},
      {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
      {upgrade_request("/other", kBearer), 404},
      {get_request("/echo", "X: " + std::string(20'000, 'x') + "\r\n"), 431},
      // cpp-httplib would return 400 for these.
      {"POST /echo HTTP/1.1\r\nHost: localhost\r\n" + kBearer + "Content-Length: 5\r\n\r\nhalf",
       408},
      {"POST /echo HTTP/1.1\r\nHost: localhost\r\n" + kBearer +
           "Transfer-Encoding: chunked\r\n\r\n200000\r\n" + std::string(0x200000, 'x') +
           "\r\n0\r\n\r\n",
       413},
  };
  for (const auto& [request, status] : requests) {
    RawClient client(server.port);
    const RawResponse response = client.exchange(request);
    EXPECT_EQ(response.status, status);
    ASSERT_TRUE(response.headers.contains("content-type")) << status;
    EXPECT_EQ(response.headers.at("content-type"), "text/x-rejection");
    EXPECT_EQ(response.body, std::to_string(status));
    EXPECT_TRUE(client.closed_within(20s));
  }
}

}  // namespace
}  // namespace tt::test
