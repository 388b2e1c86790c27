#include "server/door/detail/request_head.h"

#include <algorithm>
#include <cctype>
#include <format>
#include <ranges>

namespace tt::door {
namespace {

bool same(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// RFC 9110 5.6.2
bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").contains(static_cast<char>(c));
  });
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text,
                             [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

Refusal malformed(std::string_view what) {
  return {400, std::format("This is not a well-formed HTTP/1.1 request: {}.", what)};
}

bool changes_state(std::string_view method) {
  return method != "GET" && method != "HEAD" && method != "OPTIONS";
}

bool is_websocket_key(std::string_view key) {
  // Base64 of 16 bytes.
  return key.size() == 24 && key.ends_with("==");
}

Verdict judge_upgrade(const RequestHead& head, std::string_view websocket_path) {
  const auto question = head.target.find('?');
  const std::string_view path = head.target.substr(0, question);
  if (path != websocket_path) {
    return Refusal{404,
                   std::format("There is no WebSocket at this path; it is at {}.", websocket_path)};
  }
  if (head.first("Sec-WebSocket-Version") != "13") {
    return Refusal{426, "This server speaks WebSocket version 13."};
  }
  // The rest are cases in which libwebsockets would hang up without a word.
  if (!is_websocket_key(head.first("Sec-WebSocket-Key").value_or(""))) {
    return malformed("Sec-WebSocket-Key is missing or not 16 bytes in base64");
  }
  if (head.count("Connection") != 1 || head.first("Connection")->size() > 120) {
    return malformed("an upgrade needs one short Connection header");
  }
  if (head.count("Sec-WebSocket-Protocol") != 0) {
    return Refusal{400, "This WebSocket has no subprotocols."};
  }
  if (head.count("Content-Length") != 0 || head.count("Transfer-Encoding") != 0) {
    return malformed("an upgrade has no body");
  }
  Upgrade upgrade{.path = std::string(path), .query = {}, .headers = {}};
  if (question != std::string_view::npos) upgrade.query = head.target.substr(question + 1);
  for (const auto& field : head.fields) upgrade.headers.emplace_back(field.name, field.value);
  return upgrade;
}

// Where this request ends has to be beyond doubt, or its body could pass for the
// next request.
bool has_clear_length(const RequestHead& head) {
  const std::size_t lengths = head.count("Content-Length");
  const std::size_t encodings = head.count("Transfer-Encoding");
  if (lengths + encodings == 0) return true;
  if (lengths + encodings > 1) return false;
  if (encodings == 1) return same(*head.first("Transfer-Encoding"), "chunked");
  const std::string_view length = *head.first("Content-Length");
  return !length.empty() && length.size() <= 18 &&
         std::ranges::all_of(length, [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string_view status_text(int status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 426:
      return "Upgrade Required";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

}  // namespace

std::size_t RequestHead::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(fields, [&](const Field& field) { return same(field.name, name); }));
}

std::optional<std::string_view> RequestHead::first(std::string_view name) const {
  const auto found =
      std::ranges::find_if(fields, [&](const Field& field) { return same(field.name, name); });
  if (found == fields.end()) return std::nullopt;
  return found->value;
}

bool RequestHead::lists(std::string_view name, std::string_view token) const {
  for (const Field& field : fields) {
    if (!same(field.name, name)) continue;
    for (const auto part : std::views::split(field.value, ',')) {
      if (same(trim(std::string_view(part)), token)) return true;
    }
  }
  return false;
}

std::expected<RequestHead, Refusal> parse_request_head(std::string_view text) {
  RequestHead head;
  bool is_request_line = true;
  for (;;) {
    const auto end = text.find("\r\n");
    if (end == std::string_view::npos) return std::unexpected(malformed("no blank line"));
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 2);
    if (is_request_line) {
      is_request_line = false;
      const auto first = line.find(' ');
      const auto last = line.rfind(' ');
      if (first == std::string_view::npos || first == last) {
        return std::unexpected(malformed("the request line"));
      }
      head.method = line.substr(0, first);
      head.target = line.substr(first + 1, last - first - 1);
      head.version = line.substr(last + 1);
      const bool target_is_path =
          head.target.starts_with('/') || (head.target == "*" && head.method == "OPTIONS");
      if (!is_token(head.method) || !target_is_path || head.target.contains(' ') ||
          has_control(head.target) || (head.version != "HTTP/1.1" && head.version != "HTTP/1.0")) {
        return std::unexpected(malformed("the request line"));
      }
      continue;
    }
    if (line.empty()) return head;
    if (line.size() > kMaxFieldBytes) {
      return std::unexpected(
          Refusal{431, std::format("A header is longer than {} bytes.", kMaxFieldBytes)});
    }
    if (head.fields.size() == kMaxFields) {
      return std::unexpected(
          Refusal{431, std::format("There are more than {} headers.", kMaxFields)});
    }
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) || has_control(line)) {
      return std::unexpected(malformed("a header line"));
    }
    head.fields.push_back({line.substr(0, colon), trim(line.substr(colon + 1))});
  }
}

Verdict judge(const RequestHead& head, const HostRules& rules, std::string_view websocket_path) {
  if (head.count("Host") != 1) return malformed("exactly one Host header is needed");
  const std::string_view host = *head.first("Host");
  if (!host_is_ours(host, rules)) {
    return Refusal{403, std::format("This server does not answer to the name '{}'.", host)};
  }
  if (!has_clear_length(head)) return malformed("the length of its body is not clear");
  const bool is_upgrade = head.method == "GET" && head.version == "HTTP/1.1" &&
                          head.lists("Connection", "upgrade") && head.count("Upgrade") == 1 &&
                          same(*head.first("Upgrade"), "websocket");
  if (is_upgrade || changes_state(head.method)) {
    for (const auto& field : head.fields) {
      if (same(field.name, "Origin") && !origin_matches_host(field.value, host)) {
        return Refusal{403, std::format("A page of '{}' may not do this here.", field.value)};
      }
    }
  }
  if (is_upgrade) return judge_upgrade(head, websocket_path);
  return Serve{.then_close = head.lists("Connection", "close")};
}

std::string to_response(const Refusal& refusal, std::string_view method) {
  const std::string body = refusal.why + "\n";
  return std::format(
      "HTTP/1.1 {} {}\r\n"
      "Connection: close\r\n"
      "{}"
      "Content-Type: text/plain; charset=utf-8\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "Content-Length: {}\r\n\r\n{}",
      refusal.status, status_text(refusal.status),
      refusal.status == 426 ? "Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n" : "",
      body.size(), method == "HEAD" ? "" : body);
}

}  // namespace tt::door
