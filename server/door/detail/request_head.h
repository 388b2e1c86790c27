// The head of one HTTP/1 request, and what the door does with it. Stricter than
// cpp-httplib and libwebsockets are, so that neither can see a header in the
// same bytes that was not seen, and judged, here.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/door/admission.h"
#include "server/door/websocket_handler.h"

namespace tt::door {

// From the request line to the blank line.
constexpr std::size_t kMaxHeadBytes = 16 * 1024;
// What cpp-httplib takes (http_server.cpp checks); it answers 400 beyond.
constexpr std::size_t kMaxFieldBytes = 8190;
constexpr std::size_t kMaxFields = 100;

// An answer that the door gives itself. The connection ends after it.
struct Refusal {
  int status;
  std::string why;  // one sentence, the body
};

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
};

// `text` is a whole head with its blank line.
std::expected<RequestHead, Refusal> parse_request_head(std::string_view text);

struct Serve {
  bool then_close;  // the client asked for it
};
using Verdict = std::variant<Serve, Upgrade, Refusal>;

Verdict judge(const RequestHead& head, const HostRules& rules, std::string_view websocket_path);

// The whole response, "Connection: close" included; no body for HEAD.
std::string to_response(const Refusal& refusal, std::string_view method);

}  // namespace tt::door
