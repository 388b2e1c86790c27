#include "server/frontend/detail/request_decision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tests/server/frontend/raw_client.h"

namespace tt::frontend {
namespace {

using test::get_request;
using test::upgrade_request;

using Clock = std::chrono::steady_clock;

DecisionRules default_rules() {
  return {.hosts = {.bound_host = "127.0.0.1"},
          .requests = {
              .cors_origins = {"https://notes.example"},
              .embed_origins = {},
              .body_rules = {
                  {.path = "/import", .type = "application/octet-stream", .max_bytes = 1u << 30},
                  {.path = "/import", .type = "application/x-ndjson", .max_bytes = 1u << 30},
                  {.path = "/any", .type = "", .max_bytes = 10}}}};
}

// "serve", "upgrade", "reply STATUS", or the status of the rejection.
std::string decision_for(std::string_view text, Authenticator& authenticator,
                         const DecisionRules& rules = default_rules()) {
  const auto head = parse_request_head(text);
  if (!head) return std::to_string(status_of(head.error().reason));
  const RequestDecision decision = authorize(*head, rules, authenticator, "peer", Clock::now());
  if (const auto* refusal = std::get_if<Rejection>(&decision)) {
    EXPECT_FALSE(refusal->why.empty());
    return std::to_string(status_of(refusal->reason));
  }
  if (const auto* reply = std::get_if<Reply>(&decision)) {
    return "reply " + std::to_string(reply->status);
  }
  if (const auto* serve = std::get_if<Serve>(&decision)) {
    return serve->unauthenticated ? "serve unauthenticated"
           : serve->close_after   ? "serve and close"
                                  : "serve";
  }
  return "upgrade";
}
std::string decision_for(std::string_view text) {
  Authenticator open("");
  return decision_for(text, open);
}

std::string remove_part(std::string text, std::string_view part) {
  const auto at = text.find(part);
  return at == std::string::npos ? "part not found" : text.erase(at, part.size());
}

TEST(RequestDecision, ForRequestHeads) {
  const std::string post = "POST /x HTTP/1.1\r\nHost: 127.0.0.1:80\r\n";
  const std::string json = "Content-Type: application/json\r\n";
  const std::string form = "Content-Type: application/x-www-form-urlencoded\r\n";
  // The headers that a browser sends with a no-cors request of a page.
  const auto no_cors = [](const std::string& site, const std::string& dest) {
    return "Sec-Fetch-Site: " + site + "\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: " + dest +
           "\r\n";
  };
  const auto navigation = [](const std::string& site, const std::string& dest) {
    return "Sec-Fetch-Site: " + site + "\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: " + dest +
           "\r\n";
  };
  const std::string many_fields = [] {
    std::string out;
    for (int i = 0; i < 100; ++i) out += "X-" + std::to_string(i) + ": 1\r\n";
    return out;
  }();
  const struct {
    const char* what;
    std::string text;
    const char* decision;
  } cases[] = {
      {"plain", get_request("/x"), "serve"},
      {"HTTP/1.0", "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", "serve"},
      {"HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", "serve"},
      {"HTTP/1.0 with a foreign Host", "GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n", "403"},
      {"HTTP/1.0 without Host, of a page", "GET / HTTP/1.0\r\nOrigin: http://evil.example\r\n\r\n",
       "403"},
      {"an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "400"},
      {"absolute form", "GET http://localhost/x HTTP/1.1\r\nHost: localhost\r\n\r\n", "serve"},
      {"absolute form without a path",
       "GET HTTP://127.0.0.1:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", "serve"},
      {"absolute form of another host",
       "GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "403"},
      {"absolute form with a name before the host",
       "GET http://localhost@evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "403"},
      {"absolute form, foreign Host",
       "GET http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"},
      {"absolute form without Host", "GET http://localhost/ HTTP/1.1\r\n\r\n", "400"},
      {"absolute form without a host", "GET http:///x HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
      {"https is not spoken here", "GET https://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
       "400"},
      {"server-wide OPTIONS", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", "serve"},
      {"Connection: close", get_request("/x", "Connection: foo , CLOSE\r\n"), "serve and close"},
      {"value with non-ASCII", get_request("/x", "X-Name: caf\xc3\xa9\r\n"), "serve"},
      {"upgrade", upgrade_request(), "upgrade"},
      {"upgrade with query", upgrade_request("/api/v1/live?session=3"), "upgrade"},
      {"upgrade to h2c", get_request("/x", "Connection: Upgrade\r\nUpgrade: h2c\r\n"), "serve"},
      {"Upgrade without Connection", get_request("/api/v1/live", "Upgrade: websocket\r\n"),
       "serve"},

      {"no Host", "GET / HTTP/1.1\r\n\r\n", "400"},
      {"two Hosts", get_request("/", "host: evil.example\r\n"), "400"},
      {"foreign Host", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"},
      {"foreign page reads", get_request("/", "Origin: http://evil.example\r\n"), "403"},
      {"preflight of a foreign page",
       "OPTIONS /x HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
       "Access-Control-Request-Method: POST\r\n\r\n",
       "403"},
      {"foreign page embeds", get_request("/x", no_cors("cross-site", "script")), "403"},
      {"same-site page embeds", get_request("/x", no_cors("same-site", "image")), "403"},
      {"foreign page frames", get_request("/", navigation("cross-site", "iframe")), "403"},
      {"foreign page links", get_request("/", navigation("cross-site", "document")), "serve"},
      {"typed address", get_request("/", navigation("none", "document")), "serve"},
      {"own page fetches", get_request("/x", no_cors("same-origin", "empty")), "serve"},
      {"a second Sec-Fetch-Site counts",
       get_request("/x", no_cors("same-origin", "empty") + "sec-fetch-site: cross-site\r\n"),
       "403"},
      {"foreign page posts without Origin",
       post + no_cors("cross-site", "empty") + "Content-Length: 0\r\n\r\n", "403"},
      {"foreign page navigates by POST",
       post + navigation("cross-site", "document") + "Content-Length: 0\r\n\r\n", "403"},
      {"our port in another Origin", post + "Origin: http://127.0.0.1:81\r\n\r\n", "403"},
      {"X-Forwarded-Host is not trusted",
       "GET / HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: 127.0.0.1\r\n\r\n", "403"},
      {"X-Forwarded-Host is ignored",
       get_request("/", "X-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n"),
       "serve"},

      {"allowed page reads", get_request("/", "Origin: https://notes.example\r\n"), "serve"},
      {"allowed page upgrades",
       upgrade_request("/api/v1/live", "Origin: https://notes.example\r\n"), "upgrade"},
      {"preflight of an allowed page",
       "OPTIONS /x HTTP/1.1\r\nHost: localhost\r\nOrigin: https://notes.example\r\n"
       "Access-Control-Request-Method: POST\r\n\r\n",
       "reply 204"},
      {"allowed page fetches",
       get_request("/x", "Origin: https://notes.example\r\n" + no_cors("cross-site", "empty")),
       "serve"},
      {"allowed and foreign at once",
       get_request("/x", "Origin: https://notes.example\r\nOrigin: http://evil.example\r\n"),
       "403"},
      {"an origin with an allowed one as prefix",
       get_request("/x", "Origin: https://notes.example.evil\r\n"), "403"},
      {"an allowed name on http", get_request("/x", "Origin: http://notes.example\r\n"), "403"},

      {"foreign page posts", post + "Origin: http://evil.example\r\n\r\n", "403"},
      {"own page posts", post + "Origin: http://127.0.0.1\r\n\r\n", "serve"},
      {"second Origin counts", post + "Origin: http://127.0.0.1\r\norigin: null\r\n\r\n", "403"},
      {"foreign page upgrades", upgrade_request("/api/v1/live", "Origin: http://a.example\r\n"),
       "403"},
      {"own page upgrades", upgrade_request("/api/v1/live", "Origin: http://127.0.0.1\r\n"),
       "upgrade"},

      {"upgrade of another path", upgrade_request("/other"), "404"},
      {"upgrade of an old version", upgrade_request("/api/v1/live", "sec-websocket-version: 8\r\n"),
       "upgrade"},  // the first one counts; libwebsockets always uses 13
      {"upgrade without version", remove_part(upgrade_request(), "Sec-WebSocket-Version: 13\r\n"),
       "426"},
      {"upgrade without key",
       remove_part(upgrade_request(), "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"), "400"},
      {"upgrade with short key", remove_part(upgrade_request(), "dGhl"), "400"},
      {"upgrade with subprotocol",
       upgrade_request("/api/v1/live", "Sec-WebSocket-Protocol: chat\r\n"), "400"},
      {"upgrade with body", upgrade_request("/api/v1/live", "Content-Length: 3\r\n"), "400"},

      {"length", post + json + "Content-Length: 12\r\n\r\n", "serve"},
      {"chunked", post + json + "Transfer-Encoding: Chunked\r\n\r\n", "serve"},
      {"no body", post + "\r\n", "serve"},
      {"an empty body", post + "Content-Length: 0\r\n\r\n", "serve"},
      {"JSON with a charset",
       post + "Content-Type: Application/JSON; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
       "serve"},
      {"no type", post + "Content-Length: 2\r\n\r\n", "415"},
      {"no type, chunked", post + "Transfer-Encoding: chunked\r\n\r\n", "415"},
      {"a form", post + form + "Content-Length: 2\r\n\r\n", "415"},
      {"an empty form", post + form + "Content-Length: 0\r\n\r\n", "415"},
      {"a form of files",
       post + "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 2\r\n\r\n", "415"},
      {"a form as text", post + "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n", "415"},
      {"text with a JSON parameter",
       post + "Content-Type: text/plain; application/json\r\nContent-Length: 2\r\n\r\n", "415"},
      {"two types", post + json + form + "Content-Length: 2\r\n\r\n", "415"},
      {"a file where one is accepted",
       "POST /import HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
       "Content-Length: 99999999\r\n\r\n",
       "serve"},
      {"the second type accepted there",
       "POST /import HTTP/1.1\r\nHost: localhost\r\n"
       "content-type: Application/X-NDJSON; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
       "serve"},
      {"both at once",
       "POST /import HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
       "Content-Type: application/octet-stream\r\nContent-Length: 2\r\n\r\n",
       "415"},
      {"JSON where a file is expected",
       "POST /import HTTP/1.1\r\nHost: localhost\r\n" + json + "Content-Length: 2\r\n\r\n", "415"},
      {"a file where JSON is expected",
       post + "Content-Type: application/octet-stream\r\nContent-Length: 2\r\n\r\n", "415"},
      {"any type where any is accepted",
       "POST /any HTTP/1.1\r\nHost: localhost\r\n" + form + "Content-Length: 10\r\n\r\n", "serve"},
      {"larger than the limit of the path",
       "POST /any HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\n\r\n", "413"},
      {"larger than the JSON limit", post + json + "Content-Length: 16777217\r\n\r\n", "413"},
      {"two lengths", post + "Content-Length: 12\r\nContent-Length: 12\r\n\r\n", "400"},
      {"a list of lengths", post + "Content-Length: 12, 12\r\n\r\n", "400"},
      {"a signed length", post + "Content-Length: +12\r\n\r\n", "400"},
      {"a huge length", post + "Content-Length: 9999999999999999999\r\n\r\n", "400"},
      {"length and chunked", post + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
       "400"},
      {"another encoding", post + "Transfer-Encoding: gzip, chunked\r\n\r\n", "400"},

      {"not HTTP", "\x16\x03\x01\x02\r\n\r\n", "400"},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\n", "400"},
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
  for (const auto& [what, text, decision] : cases) EXPECT_EQ(decision_for(text), decision) << what;
}

// Without the key only health and the login can be requested.
// With --embed-origins, a frame of another site gets the page, and nothing else.
TEST(RequestDecision, OfFramesOfOtherSites) {
  DecisionRules rules = default_rules();
  rules.requests.embed_origins = {"https://wiki.example"};
  Authenticator open("");
  const auto sent = [](const char* mode, const char* dest, const char* site) {
    return std::string("Sec-Fetch-Site: ") + site + "\r\nSec-Fetch-Mode: " + mode +
           "\r\nSec-Fetch-Dest: " + dest + "\r\n";
  };
  const std::string frame = sent("navigate", "iframe", "cross-site");
  const struct {
    const char* what;
    std::string text;
    const char* decision;
  } cases[] = {
      {"the page", get_request("/", frame), "serve"},
      {"the page by its name", get_request("/index.html", frame), "serve"},
      {"of the same site", get_request("/", sent("navigate", "iframe", "same-site")), "serve"},
      {"a route", get_request("/api/v1/sessions", frame), "403"},
      {"a report", get_request("/api/v1/sessions/a/report", frame), "403"},
      {"another spelling of the page", get_request("//", frame), "403"},
      {"an object", get_request("/", sent("navigate", "object", "cross-site")), "403"},
      {"a script", get_request("/", sent("no-cors", "script", "cross-site")), "403"},
      {"a form in the frame",
       "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n" + frame + "\r\n", "403"},
      {"a script of the page around it",
       get_request("/", "Origin: https://wiki.example\r\n" + sent("cors", "empty", "cross-site")),
       "403"},
  };
  for (const auto& [what, text, decision] : cases)
    EXPECT_EQ(decision_for(text, open, rules), decision) << what;
  EXPECT_EQ(decision_for(get_request("/", frame), open), "403") << "without the option";
  Authenticator locked("0123456789abcdef");
  EXPECT_EQ(decision_for(get_request("/", frame), locked, rules), "401");
}

TEST(RequestDecision, WithoutKey) {
  const struct {
    std::string text;
    const char* decision;
  } cases[] = {
      {get_request("/"), "401"},
      {get_request("/api/v1/sessions"), "401"},
      {get_request("/api/v1/nothing"), "401"},
      {get_request("/../etc/passwd"), "401"},
      {get_request("/metrics"), "401"},
      {get_request("/api/v1/health"), "serve unauthenticated"},
      {get_request("/api/v1/health?verbose"), "serve unauthenticated"},
      {"HEAD /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", "serve unauthenticated"},
      {"POST /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", "401"},
      {get_request("/api/v1/health/"), "401"},
      {get_request("/api/v1/healthy"), "401"},
      {get_request("/api/v1/%68ealth"), "401"},
      {get_request("//api/v1/health"), "401"},
      {get_request("/api/v1/health;x"), "401"},
      {"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", "401"},
      {"MADEUP / HTTP/1.1\r\nHost: localhost\r\n\r\n", "401"},
      {upgrade_request(), "401"},
      {upgrade_request("/elsewhere"), "401"},
      {upgrade_request("/api/v1/health"), "401"},
      {get_request("/", "Authorization: Basic YTpi\r\n"), "401"},
      {get_request("/", "Authorization: Bearer wrong\r\n"), "401"},
      {get_request("/", "Authorization: Bearer\r\n"), "401"},
      {get_request("/", "Cookie: tt_session=\r\n"), "401"},
      {get_request("/", "Cookie: tt_session=a-key-of-some-length\r\n"), "401"},
      {get_request("/api/v1/health", "Authorization: Bearer wrong\r\n"), "serve unauthenticated"},
      {get_request("/login"), "401"},
      {get_request("/login?code="), "401"},
      {get_request("/login?code=0123"), "401"},
      {"HEAD /login?code=0123 HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"},
      {"POST /login?code=0123 HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"},
      // With the key, the other rules still apply.
      {get_request("/x", "Authorization: Bearer a-key-of-some-length\r\n"), "serve"},
      {get_request("/x", "authorization: bEARER  a-key-of-some-length \r\n"), "serve"},
      {get_request("/api/v1/health", "Authorization: Bearer a-key-of-some-length\r\n"), "serve"},
      {upgrade_request("/api/v1/live", "Authorization: Bearer a-key-of-some-length\r\n"),
       "upgrade"},
      {get_request("/x",
                   "Authorization: Bearer a-key-of-some-length\r\nOrigin: http://a.example\r\n"),
       "403"},
      {"GET /x HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer a key of some "
       "length\r\n\r\n",
       "403"},
  };
  for (const auto& [text, decision] : cases) {
    Authenticator fresh("a-key-of-some-length");  // without failed attempts
    EXPECT_EQ(decision_for(text, fresh), decision) << text;
  }
}

TEST(RequestDecision, LoginLinkIsSingleUseAndGetOnly) {
  Authenticator authenticator("a-key-of-some-length");
  const std::string path = "/login?x=1&code=" + authenticator.create_login_code(Clock::now());
  EXPECT_EQ(decision_for("HEAD " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n", authenticator),
            "405");
  EXPECT_EQ(decision_for(get_request(path, "Sec-Purpose: prefetch;prerender\r\n"), authenticator),
            "401");
  EXPECT_EQ(decision_for(get_request(path, "Origin: http://evil.example\r\n"), authenticator),
            "403");
  const std::string text = get_request(path);
  const auto head = parse_request_head(text).value();
  const RequestDecision decision =
      authorize(head, default_rules(), authenticator, "peer", Clock::now());
  const auto* reply = std::get_if<Reply>(&decision);
  ASSERT_NE(reply, nullptr);
  const std::string cookie = *std::ranges::find_if(
      reply->headers, [](const std::string& line) { return line.starts_with("Set-Cookie: "); });
  for (const char* part : {"tt_session=", "; Path=/", "; HttpOnly", "; SameSite=Strict"}) {
    EXPECT_TRUE(cookie.contains(part)) << cookie;
  }
  EXPECT_FALSE(cookie.contains("Secure"));
  EXPECT_EQ(decision_for(get_request(path), authenticator), "401");

  const std::string pair = cookie.substr(12, cookie.find(';') - 12);
  EXPECT_EQ(decision_for(get_request("/x", "Cookie: a=b; " + pair + "; c=d\r\n"), authenticator),
            "serve");
  EXPECT_EQ(
      decision_for(get_request("/x", "Cookie: a=b\r\nCookie: " + pair + "\r\n"), authenticator),
      "serve");
  EXPECT_EQ(decision_for(get_request("/x", "Cookie: not_" + pair + "\r\n"), authenticator), "401");
  EXPECT_EQ(decision_for(get_request("/x", "X-Cookie: " + pair + "\r\n"), authenticator), "401");
  EXPECT_EQ(
      decision_for(upgrade_request("/api/v1/live", "Cookie: " + pair + "\r\n"), authenticator),
      "upgrade");
  EXPECT_EQ(decision_for(upgrade_request("/api/v1/live",
                                         "Cookie: " + pair + "\r\nOrigin: http://evil.example\r\n"),
                         authenticator),
            "403");
}

TEST(RequestDecision, CookiesAreSecureWithHttps) {
  Authenticator authenticator("a-key-of-some-length");
  DecisionRules rules = default_rules();
  rules.requests.https = true;
  const std::string text =
      get_request("/login?code=" + authenticator.create_login_code(Clock::now()));
  const RequestDecision decision =
      authorize(parse_request_head(text).value(), rules, authenticator, "peer", Clock::now());
  const std::string response = to_response(std::get<Reply>(decision), "GET", "");
  EXPECT_TRUE(response.contains("; Secure\r\n")) << response;
}

// A browser that follows a link of another site does not send the SameSite=Strict cookie; the
// login page reloads once so that the cookie is sent.
TEST(RequestDecision, CrossSiteNavigationIsReloaded) {
  Authenticator authenticator("a-key-of-some-length");
  const std::string html = "Accept: text/html,application/xml;q=0.9\r\n";
  const auto rejection_of = [&](const std::string& path, const char* site) {
    const std::string text = get_request(
        path, html + "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Site: " +
                  site + "\r\n");
    return std::get<Rejection>(authorize(parse_request_head(text).value(), default_rules(),
                                         authenticator, "peer", Clock::now()));
  };
  EXPECT_TRUE(rejection_of("/", "cross-site").for_browser);
  EXPECT_TRUE(rejection_of("/", "cross-site").reload);
  EXPECT_FALSE(rejection_of("/", "same-origin").reload);  // no reload loop
  EXPECT_FALSE(rejection_of("/", "none").reload);
  EXPECT_FALSE(rejection_of("/login?code=0", "cross-site").reload);
}

TEST(RequestDecision, UpgradeHasPathQueryAndHeadersWithoutCredentials) {
  const std::string text = upgrade_request(
      "/api/v1/live?a=1&b=2", "Cookie: c=d\r\nAuthorization: Bearer x\r\nX-A:  v \r\n");
  const auto head = parse_request_head(text);
  ASSERT_TRUE(head.has_value());
  Authenticator open("");
  const RequestDecision decision = authorize(*head, default_rules(), open, "peer", Clock::now());
  const auto* upgrade = std::get_if<Upgrade>(&decision);
  ASSERT_NE(upgrade, nullptr);
  EXPECT_EQ(upgrade->path, "/api/v1/live");
  EXPECT_EQ(upgrade->query, "a=1&b=2");
  EXPECT_EQ(upgrade->headers.back(), (std::pair<std::string, std::string>("X-A", "v")));
  for (const auto& [name, value] : upgrade->headers) {
    EXPECT_NE(name, "Cookie");
    EXPECT_NE(name, "Authorization");
  }
}

}  // namespace
}  // namespace tt::frontend
