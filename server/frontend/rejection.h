// Rejection of a request by the HTTP front end, before it reaches a handler.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tt {

enum class RejectionReason : std::uint8_t {
  Malformed,           // 400: not valid HTTP
  Unauthorized,        // 401: not authenticated
  ForeignOrigin,       // 403: page of another site, or unknown Host
  NotFound,            // 404: WebSocket upgrade of another path
  MethodNotAllowed,    // 405
  Timeout,             // 408: the body was not received in time
  BodyTooLarge,        // 413
  BodyType,            // 415: unsupported media type
  UpgradeRequired,     // 426: unsupported WebSocket version
  TooManyAttempts,     // 429: too many wrong keys
  HeadTooLarge,        // 431
  TooManyConnections,  // 503
};

int status_of(RejectionReason reason);

struct Rejection {
  RejectionReason reason = RejectionReason::Malformed;
  std::string why;           // one sentence for the client
  int retry_after_s = 0;     // 0: not sent
  bool for_browser = false;  // the client is a browser that shows a page
  // Repeating the request may succeed: a browser omits the cookie on a navigation from a page
  // of another site.
  bool reload = false;
};

// Body of the response to a rejected request.
struct RejectionBody {
  std::string type;  // Content-Type
  std::string text;
};
using RejectionRenderer = std::function<RejectionBody(const Rejection&)>;

}  // namespace tt
