#include "server/door/detail/request_head.h"

#include <gtest/gtest.h>

#include "tests/server_door/raw_client.h"

namespace tt::door {
namespace {

using test::get_request;
using test::upgrade_request;

// "serve", "upgrade", or the status of the refusal.
std::string verdict_on(std::string_view text) {
  const auto head = parse_request_head(text);
  if (!head) return std::to_string(head.error().status);
  const Verdict verdict = judge(*head, {.bound_host = "127.0.0.1"}, "/api/v1/live");
  if (const auto* refusal = std::get_if<Refusal>(&verdict)) return std::to_string(refusal->status);
  if (const auto* serve = std::get_if<Serve>(&verdict)) {
    return serve->then_close ? "serve and close" : "serve";
  }
  return "upgrade";
}

std::string without(std::string text, std::string_view part) {
  const auto at = text.find(part);
  return at == std::string::npos ? "not there" : text.erase(at, part.size());
}

TEST(RequestHead, Verdicts) {
  const std::string post = "POST /x HTTP/1.1\r\nHost: 127.0.0.1:80\r\n";
  const std::string many_fields = [] {
    std::string out;
    for (int i = 0; i < 100; ++i) out += "X-" + std::to_string(i) + ": 1\r\n";
    return out;
  }();
  const struct {
    const char* what;
    std::string text;
    const char* verdict;
  } cases[] = {
      {"plain", get_request("/x"), "serve"},
      {"HTTP/1.0", "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", "serve"},
      {"server-wide OPTIONS", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", "serve"},
      {"asks to close", get_request("/x", "Connection: foo , CLOSE\r\n"), "serve and close"},
      {"value with non-ASCII", get_request("/x", "X-Name: caf\xc3\xa9\r\n"), "serve"},
      {"upgrade", upgrade_request(), "upgrade"},
      {"upgrade with query", upgrade_request("/api/v1/live?session=3"), "upgrade"},
      {"upgrade to something else", get_request("/x", "Connection: Upgrade\r\nUpgrade: h2c\r\n"),
       "serve"},
      {"Upgrade without Connection", get_request("/api/v1/live", "Upgrade: websocket\r\n"),
       "serve"},

      {"no Host", "GET / HTTP/1.1\r\n\r\n", "400"},
      {"two Hosts", get_request("/", "host: evil.example\r\n"), "400"},
      {"foreign Host", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"},
      {"foreign page reads", get_request("/", "Origin: http://evil.example\r\n"), "serve"},
      {"foreign page posts", post + "Origin: http://evil.example\r\n\r\n", "403"},
      {"own page posts", post + "Origin: http://127.0.0.1\r\n\r\n", "serve"},
      {"second Origin counts", post + "Origin: http://127.0.0.1\r\norigin: null\r\n\r\n", "403"},
      {"foreign page upgrades", upgrade_request("/api/v1/live", "Origin: http://a.example\r\n"),
       "403"},
      {"own page upgrades", upgrade_request("/api/v1/live", "Origin: http://127.0.0.1\r\n"),
       "upgrade"},

      {"upgrade elsewhere", upgrade_request("/other"), "404"},
      {"upgrade of an old version", upgrade_request("/api/v1/live", "sec-websocket-version: 8\r\n"),
       "upgrade"},  // the first one counts; libwebsockets speaks 13 to all
      {"upgrade without version", without(upgrade_request(), "Sec-WebSocket-Version: 13\r\n"),
       "426"},
      {"upgrade without key",
       without(upgrade_request(), "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"), "400"},
      {"upgrade with short key", without(upgrade_request(), "dGhl"), "400"},
      {"upgrade with subprotocol",
       upgrade_request("/api/v1/live", "Sec-WebSocket-Protocol: chat\r\n"), "400"},
      {"upgrade with body", upgrade_request("/api/v1/live", "Content-Length: 3\r\n"), "400"},

      {"length", post + "Content-Length: 12\r\n\r\n", "serve"},
      {"chunked", post + "Transfer-Encoding: Chunked\r\n\r\n", "serve"},
      {"two lengths", post + "Content-Length: 12\r\nContent-Length: 12\r\n\r\n", "400"},
      {"a list of lengths", post + "Content-Length: 12, 12\r\n\r\n", "400"},
      {"a signed length", post + "Content-Length: +12\r\n\r\n", "400"},
      {"a vast length", post + "Content-Length: 9999999999999999999\r\n\r\n", "400"},
      {"length and chunked", post + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
       "400"},
      {"another encoding", post + "Transfer-Encoding: gzip, chunked\r\n\r\n", "400"},

      {"not HTTP", "\x16\x03\x01\x02\r\n\r\n", "400"},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\n", "400"},
      {"absolute target", "GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "400"},
      {"two spaces", "GET  / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "400"},
      {"empty line first", "\r\nGET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "400"},
      {"space before colon", get_request("/", "Origin : null\r\n"), "400"},
      {"folded line", get_request("/", "X-A: 1\r\n  2\r\n"), "400"},
      {"no colon", get_request("/", "nonsense\r\n"), "400"},
      {"bare line feed", get_request("/", "X-A: 1\nHost: evil.example\r\n"), "400"},
      {"NUL", get_request("/", std::string_view("X-A: \0\r\n", 8)), "400"},
      {"101 headers", get_request("/", many_fields), "431"},
      {"a header of 9 KB", get_request("/", "Cookie: " + std::string(9000, 'c') + "\r\n"), "431"},
  };
  for (const auto& [what, text, verdict] : cases) EXPECT_EQ(verdict_on(text), verdict) << what;
}

TEST(RequestHead, UpgradeCarriesPathQueryAndHeaders) {
  const std::string text = upgrade_request("/api/v1/live?a=1&b=2", "X-A:  v \r\n");
  const auto head = parse_request_head(text);
  ASSERT_TRUE(head.has_value());
  const Verdict verdict = judge(*head, {.bound_host = "127.0.0.1"}, "/api/v1/live");
  const auto* upgrade = std::get_if<Upgrade>(&verdict);
  ASSERT_NE(upgrade, nullptr);
  EXPECT_EQ(upgrade->path, "/api/v1/live");
  EXPECT_EQ(upgrade->query, "a=1&b=2");
  EXPECT_EQ(upgrade->headers.back(), (std::pair<std::string, std::string>("X-A", "v")));
}

}  // namespace
}  // namespace tt::door
