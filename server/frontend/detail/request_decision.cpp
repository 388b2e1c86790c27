#include "server/frontend/detail/request_decision.h"

#include <algorithm>
#include <charconv>
#include <format>
#include <optional>

namespace tt::frontend {
namespace {

using Clock = std::chrono::steady_clock;

bool changes_state(std::string_view method) {
  return method != "GET" && method != "HEAD" && method != "OPTIONS";
}

bool is_upgrade(const RequestHead& head) {
  return head.method == "GET" && head.version == "HTTP/1.1" &&
         head.has_token("Connection", "upgrade") && head.count("Upgrade") == 1 &&
         equals_ignore_case(*head.first("Upgrade"), "websocket");
}

// The body length must be unambiguous, otherwise the body could be taken for the next request
// (request smuggling).
bool has_unambiguous_length(const RequestHead& head) {
  const std::size_t lengths = head.count("Content-Length");
  const std::size_t encodings = head.count("Transfer-Encoding");
  if (lengths + encodings == 0) return true;
  if (lengths + encodings > 1) return false;
  if (encodings == 1) return equals_ignore_case(*head.first("Transfer-Encoding"), "chunked");
  const std::string_view length = *head.first("Content-Length");
  return !length.empty() && length.size() <= 18 &&
         std::ranges::all_of(length, [](char c) { return c >= '0' && c <= '9'; });
}

// A top-level navigation in a tab, not in a frame.
bool is_navigation(const RequestHead& head) {
  return (head.method == "GET" || head.method == "HEAD") &&
         head.first("Sec-Fetch-Mode") == "navigate" && head.first("Sec-Fetch-Dest") == "document";
}

bool is_framed(const RequestHead& head) {
  return (head.method == "GET" || head.method == "HEAD") &&
         head.first("Sec-Fetch-Mode") == "navigate" && head.first("Sec-Fetch-Dest") == "iframe";
}

// A frame that shows the page. The request does not name the page around it, so the browser decides
// by frame-ancestors whether that page may show the response, which is the same for everyone: what
// is private is requested by the page in the frame, from its own origin.
bool is_embedding(const RequestHead& head, const FrontendRules& rules) {
  return !rules.embed_origins.empty() && is_framed(head) &&
         (head.path() == "/" || head.path() == "/index.html");
}

// Rejects requests that a page of another site made the browser send. Such a page must not
// learn anything, not even whether a resource exists. Programs send neither header, and pages
// cannot set them.
std::optional<Rejection> check_origin(const RequestHead& head, const FrontendRules& rules) {
  if (!cors_origin_of(head, rules).empty()) return std::nullopt;
  const std::string_view host = head.host();
  for (const auto& field : head.fields) {
    if (equals_ignore_case(field.name, "Origin") && !origin_matches_host(field.value, host)) {
      return Rejection{RejectionReason::ForeignOrigin,
                       std::format("Pages of '{}' cannot access this server. Allow the origin with "
                                   "--cors-origins.",
                                   field.value)};
    }
    if (equals_ignore_case(field.name, "Sec-Fetch-Site") && field.value != "same-origin" &&
        field.value != "none" && !is_navigation(head) && !is_embedding(head, rules)) {
      return Rejection{RejectionReason::ForeignOrigin,
                       is_framed(head)
                           ? "Pages of other sites cannot show this server in a frame. Allow an "
                             "origin with --embed-origins; it can show the page (/) only."
                           : "Pages of other sites cannot access this server. Allow an origin with "
                             "--cors-origins."};
    }
  }
  return std::nullopt;
}

bool is_preflight(const RequestHead& head) {
  return head.method == "OPTIONS" && head.count("Access-Control-Request-Method") > 0;
}

Reply preflight_reply() {
  return {.status = 204,
          .type = {},
          .body = {},
          .headers = {"Access-Control-Allow-Methods: GET, HEAD, POST, PATCH, DELETE",
                      "Access-Control-Allow-Headers: Authorization, Content-Type, If-None-Match, "
                      "Range",
                      "Access-Control-Max-Age: 600"}};
}

// Returns true for a browser navigation, false for programs and scripts.
bool wants_html(const RequestHead& head) {
  return head.method == "GET" && head.has_token("Accept", "text/html");
}

// The value of `name` in a query string, not decoded.
std::string_view query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const auto end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
      return pair.substr(name.size() + 1);
    }
  }
  return {};
}

// Uses a page with Refresh instead of a redirect: after a redirect the browser would not send
// the new cookie if the link was on a page of another site (mail, chat).
Reply login_reply(std::string_view token, bool secure) {
  return {.status = 200,
          .type = "text/html; charset=utf-8",
          .body =
              "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
              "<title>tensor-trace</title>\n<p>Logged in. <a href=\"./\">Continue</a></p>\n"
              "</html>\n",
          .headers = {"Refresh: 0; url=./",
                      std::format("Set-Cookie: {}={}; Path=/; HttpOnly; SameSite=Strict; "
                                  "Max-Age={}{}",
                                  kCookieName, token,
                                  std::chrono::seconds(Authenticator::kLoginLifetime).count(),
                                  secure ? "; Secure" : "")}};
}

RequestDecision authorize_login(const RequestHead& head, const FrontendRules& rules,
                                Authenticator& authenticator, Clock::time_point now) {
  // Other methods and prefetching must not consume the code.
  if (head.method != "GET") {
    return Rejection{RejectionReason::MethodNotAllowed, "Open a login link with GET."};
  }
  if (head.count("Sec-Purpose") > 0) {
    return Rejection{RejectionReason::Unauthorized,
                     "A login link cannot be prefetched. Open it in a browser."};
  }
  auto token = authenticator.login(query_value(head.query(), "code"), now);
  if (!token) return std::move(token).error();
  return login_reply(*token, rules.https);
}

// Returns nullopt when the request is allowed. Sets `unauthenticated` when it is allowed without
// authentication.
std::optional<RequestDecision> check_authentication(const RequestHead& head,
                                                    const FrontendRules& rules,
                                                    Authenticator& authenticator,
                                                    const std::string& peer, Clock::time_point now,
                                                    bool& unauthenticated) {
  if (!authenticator.requires_key()) return std::nullopt;
  if (head.path() == rules.login_path) return authorize_login(head, rules, authenticator, now);
  const auto caller = authenticator.identify(head, peer, now);
  if (caller && *caller == Caller::Authenticated) return std::nullopt;
  const bool open = (head.method == "GET" || head.method == "HEAD") &&
                    std::ranges::contains(rules.public_paths, head.path());
  if (open && !is_upgrade(head)) {
    unauthenticated = true;
    return std::nullopt;
  }
  if (!caller) return caller.error();
  return Rejection{RejectionReason::Unauthorized,
                   "An API key is required. Programs send \"Authorization: Bearer KEY\"; a browser "
                   "opens the login link that the server printed."};
}

bool is_websocket_key(std::string_view key) {
  // Base64 of 16 bytes.
  return key.size() == 24 && key.ends_with("==");
}

RequestDecision check_upgrade(const RequestHead& head, std::string_view websocket_path) {
  if (head.path() != websocket_path) {
    return Rejection{RejectionReason::NotFound,
                     std::format("There is no WebSocket at this path. Use {}.", websocket_path)};
  }
  if (head.first("Sec-WebSocket-Version") != "13") {
    return Rejection{RejectionReason::UpgradeRequired, "Only WebSocket version 13 is supported."};
  }
  // In the cases below libwebsockets would close the connection without a response.
  if (!is_websocket_key(head.first("Sec-WebSocket-Key").value_or(""))) {
    return malformed_request("Sec-WebSocket-Key is missing or not 16 bytes in base64");
  }
  if (head.count("Connection") != 1 || head.first("Connection")->size() > 120) {
    return malformed_request("an upgrade must have one Connection header of at most 120 bytes");
  }
  if (head.count("Sec-WebSocket-Protocol") != 0) {
    return Rejection{RejectionReason::Malformed, "Sec-WebSocket-Protocol is not supported."};
  }
  if (head.count("Content-Length") != 0 || head.count("Transfer-Encoding") != 0) {
    return malformed_request("an upgrade must not have a body");
  }
  Upgrade upgrade{
      .path = std::string(head.path()), .query = std::string(head.query()), .headers = {}};
  for (const auto& field : head.fields) {
    // Already checked; not passed on.
    if (equals_ignore_case(field.name, "Authorization") || equals_ignore_case(field.name, "Cookie"))
      continue;
    upgrade.headers.emplace_back(field.name, field.value);
  }
  return upgrade;
}

RequestDecision check_body(const RequestHead& head, const FrontendRules& rules,
                           bool unauthenticated) {
  const auto type = head.first("Content-Type");
  const std::string_view media = trim(type.value_or("").substr(0, type.value_or("").find(';')));
  std::string wanted;  // media types
  bool is_wanted = false;
  std::uint64_t max_bytes = 0;
  const auto take = [&](const BodyRule& rule) {
    wanted += (wanted.empty() ? "" : " or ") + rule.type;
    is_wanted = is_wanted || rule.type.empty() ||
                (head.count("Content-Type") == 1 && equals_ignore_case(media, rule.type));
    max_bytes = std::max(max_bytes, rule.max_bytes);
  };
  for (const BodyRule& rule : rules.body_rules)
    if (rule.path == head.path()) take(rule);
  const bool is_json = !std::ranges::contains(rules.body_rules, head.path(), &BodyRule::path);
  if (is_json) take({.path = {}, .type = "application/json", .max_bytes = rules.max_body_bytes});

  const std::string_view length_text = head.first("Content-Length").value_or("0");
  std::uint64_t length = 0;
  std::from_chars(length_text.data(), length_text.data() + length_text.size(), length);
  if (length > max_bytes) {
    return Rejection{
        RejectionReason::BodyTooLarge,
        std::format("The body has {} bytes; the maximum here is {}.", length, max_bytes)};
  }
  // Media types of HTML forms are rejected even without a body.
  const bool has_body = length > 0 || head.count("Transfer-Encoding") > 0;
  if (changes_state(head.method) && (has_body || type) && !is_wanted) {
    return Rejection{RejectionReason::BodyType,
                     std::format("The body must be sent with Content-Type: {}.", wanted)};
  }
  return Serve{.close_after = head.has_token("Connection", "close"),
               .unauthenticated = unauthenticated,
               .max_body = max_bytes};
}

}  // namespace

std::string_view cors_origin_of(const RequestHead& head, const FrontendRules& rules) {
  if (head.count("Origin") != 1) return {};
  const std::string_view origin = *head.first("Origin");
  return std::ranges::contains(rules.cors_origins, origin) ? origin : std::string_view{};
}

RequestDecision authorize(const RequestHead& head, const DecisionRules& rules,
                          Authenticator& authenticator, const std::string& peer,
                          Clock::time_point now) {
  // Browsers, whose pages may use a name of their own for this address, send a Host header.
  const std::size_t hosts = head.count("Host");
  if (hosts > 1 || (hosts == 0 && head.version != "HTTP/1.0"))
    return malformed_request("exactly one Host header is required");
  for (const std::string_view host : {head.first("Host").value_or(""), head.authority}) {
    if (!host.empty() && !is_allowed_host(host, rules.hosts)) {
      return Rejection{RejectionReason::ForeignOrigin,
                       std::format("Unknown host name '{}'. Allow it with --allowed-host.", host)};
    }
  }
  if (hosts == 1 && head.first("Host")->empty())
    return malformed_request("the Host header is empty");
  if (!has_unambiguous_length(head)) return malformed_request("the body length is ambiguous");
  if (auto rejection = check_origin(head, rules.requests)) return *std::move(rejection);
  if (is_preflight(head) && !cors_origin_of(head, rules.requests).empty()) {
    return preflight_reply();
  }
  bool unauthenticated = false;
  if (auto decision =
          check_authentication(head, rules.requests, authenticator, peer, now, unauthenticated)) {
    if (auto* rejection = std::get_if<Rejection>(&*decision)) {
      rejection->for_browser = wants_html(head);
      // A browser omits the cookie on a navigation from a page of another site.
      const auto site = head.first("Sec-Fetch-Site");
      rejection->reload = rejection->reason == RejectionReason::Unauthorized &&
                          is_navigation(head) && head.path() != rules.requests.login_path &&
                          (site == "cross-site" || site == "same-site");
    }
    return *std::move(decision);
  }
  if (is_upgrade(head)) return check_upgrade(head, rules.requests.websocket_path);
  return check_body(head, rules.requests, unauthenticated);
}

}  // namespace tt::frontend
