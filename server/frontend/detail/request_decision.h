// Decides from the request head alone what to do with a request. All access checks are made
// here, in this order, before a handler or the WebSocket service sees the request:
// 1. Host is known and the body length is unambiguous;
// 2. no page of another site sent it (Origin, Sec-Fetch-Site);
// 3. the sender is authenticated, or the path is open;
// 4. the type and size of the body are accepted.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/frontend/detail/authenticator.h"
#include "server/frontend/detail/reply.h"
#include "server/frontend/detail/request_head.h"
#include "server/frontend/frontend_rules.h"
#include "server/frontend/origin_policy.h"
#include "server/frontend/rejection.h"
#include "server/frontend/websocket_handler.h"

namespace tt::frontend {

// Pass to the handlers.
struct Serve {
  bool close_after = false;      // requested by the client
  bool unauthenticated = false;  // not authenticated, but the path is open
  std::uint64_t max_body = 0;    // bytes
};
using RequestDecision = std::variant<Serve, Upgrade, Rejection, Reply>;

struct DecisionRules {
  HostRules hosts;
  FrontendRules requests;
};

// `peer` is the key for counting wrong keys (peer_group()).
RequestDecision authorize(const RequestHead& head, const DecisionRules& rules,
                          Authenticator& authenticator, const std::string& peer,
                          std::chrono::steady_clock::time_point now);

// Returns the Origin of the request if it is an allowed CORS origin, otherwise empty.
std::string_view cors_origin_of(const RequestHead& head, const FrontendRules& rules);

}  // namespace tt::frontend
