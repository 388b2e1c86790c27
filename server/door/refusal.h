// Why the door answers a request itself instead of letting it in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tt {

enum class RefusalReason : std::uint8_t {
  Malformed,           // 400: not HTTP as it should be
  NoKey,               // 401: who asks is not known
  Foreign,             // 403: another site's page, a name that is not ours
  NotFound,            // 404: an upgrade of another path
  MethodNotAllowed,    // 405
  Timeout,             // 408: the body did not come in time
  BodyTooLarge,        // 413
  BodyType,            // 415: a body of a type that is not taken
  UpgradeRequired,     // 426: another version of WebSocket
  TooManyAttempts,     // 429: wrong keys
  HeadTooLarge,        // 431
  TooManyConnections,  // 503
};

int status_of(RefusalReason reason);

struct Refusal {
  RefusalReason reason = RefusalReason::Malformed;
  std::string why;          // one sentence: what to do
  int retry_after_s = 0;    // 0: not told
  bool for_person = false;  // a browser shows it as a page
  // The same request once more will do: a browser leaves the cookie out when a
  // page of another site led it here.
  bool reload = false;
};

// A response's body as the door's user wants refusals to look.
struct RefusalBody {
  std::string type;  // Content-Type
  std::string text;
};
using RefusalRenderer = std::function<RefusalBody(const Refusal&)>;

}  // namespace tt
