// Parses the head of an HTTP/1 request. Stricter than cpp-httplib and libwebsockets, so that
// neither can see a header that was not checked here (request_decision.h).
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string_view>
#include <vector>

#include "server/frontend/rejection.h"

namespace tt::frontend {

// From the request line to the blank line.
constexpr std::size_t kMaxHeadBytes = 16 * 1024;
// Limits of cpp-httplib (checked in http_server.cpp); beyond them it answers 400.
constexpr std::size_t kMaxFieldBytes = 8190;
constexpr std::size_t kMaxFields = 100;

// Views into the parsed text.
struct RequestHead {
  struct Field {
    std::string_view name;
    std::string_view value;  // trimmed
  };
  std::string_view method;
  std::string_view target;     // begins with '/', or is "*"
  std::string_view authority;  // of an absolute-form target, "http://authority/..."; else empty
  std::string_view version;
  std::vector<Field> fields;

  std::size_t count(std::string_view name) const;
  std::optional<std::string_view> first(std::string_view name) const;
  // Returns true when a comma-separated header contains `token`, case-insensitive.
  bool has_token(std::string_view name, std::string_view token) const;
  std::string_view path() const { return target.substr(0, target.find('?')); }
  std::string_view query() const;  // after the '?', not decoded
  // What the request was sent to. Empty: HTTP/1.0 without a Host header.
  std::string_view host() const {
    return authority.empty() ? first("Host").value_or("") : authority;
  }
};

// `text` is a complete head with its blank line.
std::expected<RequestHead, Rejection> parse_request_head(std::string_view text);

// Rejection of a malformed request.
Rejection malformed_request(std::string_view what);

// Compares HTTP names, case-insensitive.
bool equals_ignore_case(std::string_view a, std::string_view b);
// Removes surrounding spaces and tabs.
std::string_view trim(std::string_view text);

}  // namespace tt::frontend
