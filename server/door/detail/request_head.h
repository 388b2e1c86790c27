// The head of one HTTP/1 request. Stricter than cpp-httplib and libwebsockets
// are, so that neither can see a header in the same bytes that was not seen, and
// judged (verdict.h), here.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string_view>
#include <vector>

#include "server/door/refusal.h"

namespace tt::door {

// From the request line to the blank line.
constexpr std::size_t kMaxHeadBytes = 16 * 1024;
// What cpp-httplib takes (http_server.cpp checks); it answers 400 beyond.
constexpr std::size_t kMaxFieldBytes = 8190;
constexpr std::size_t kMaxFields = 100;

// Views into the bytes that were parsed.
struct RequestHead {
  struct Field {
    std::string_view name;
    std::string_view value;  // trimmed
  };
  std::string_view method;
  std::string_view target;  // begins with '/', or is "*"
  std::string_view version;
  std::vector<Field> fields;

  std::size_t count(std::string_view name) const;
  std::optional<std::string_view> first(std::string_view name) const;
  // Whether a comma separated header lists `token`; upper and lower case are one.
  bool lists(std::string_view name, std::string_view token) const;
  std::string_view path() const { return target.substr(0, target.find('?')); }
  std::string_view query() const;  // behind the '?', not decoded
};

// `text` is a whole head with its blank line.
std::expected<RequestHead, Refusal> parse_request_head(std::string_view text);

// The refusal of a head, or of a whole request, that is not as HTTP wants it.
Refusal malformed(std::string_view what);

// Names in HTTP: upper and lower case are one.
bool same_name(std::string_view a, std::string_view b);
// Without blanks and tabs around it.
std::string_view trim(std::string_view text);

}  // namespace tt::door
