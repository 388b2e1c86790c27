// A response made without a handler: rejections, login, CORS preflight. The connection is
// closed after it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/frontend/frontend_rules.h"
#include "server/frontend/rejection.h"

namespace tt::frontend {

struct Reply {
  int status = 200;
  std::string type;  // of the body
  std::string body;
  std::vector<std::string> headers;  // "Name: value"
  std::string note{};                // for the log
};

// Without a renderer the body is the reason as plain text.
Reply reply_of(const Rejection& rejection, const RejectionRenderer& renderer);

// The headers of every response, each with its CRLF, Content-Security-Policy first.
// `cors_origin`: the origin that may read the response, or empty.
std::string common_headers(const FrontendRules& rules, std::string_view cors_origin,
                           std::string_view request_id);

// The complete response with "Connection: close"; no body for HEAD.
std::string to_response(const Reply& reply, std::string_view method,
                        std::string_view common_headers);

}  // namespace tt::frontend
