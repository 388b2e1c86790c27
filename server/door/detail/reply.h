// A response that the door makes without a handler: refusals, the answer to a
// login, to a preflight. The connection ends after it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/door/refusal.h"

namespace tt::door {

struct Reply {
  int status = 200;
  std::string type;  // of the body
  std::string body;
  std::vector<std::string> headers;  // "Name: value"
  std::string note{};                // for the log
};

// With `renderer` empty the body is the reason as plain text.
Reply reply_of(const Refusal& refusal, const RefusalRenderer& renderer);

// The lines that every response carries, each with its CRLF, its
// Content-Security-Policy first: what a browser may do with it. `cors_origin`:
// the page of another site that may read it, empty for none; `any_cors`: there
// are such sites, so caches keep answers apart.
std::string standing_headers(std::string_view cors_origin, bool any_cors,
                             std::string_view request_id);

// The whole response, "Connection: close" included; no body for HEAD.
std::string to_response(const Reply& reply, std::string_view method,
                        std::string_view standing_headers);

}  // namespace tt::door
