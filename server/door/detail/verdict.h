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

#include "server/door/admission.h"
#include "server/door/detail/access.h"
#include "server/door/detail/reply.h"
#include "server/door/detail/request_head.h"
#include "server/door/door_rules.h"
#include "server/door/refusal.h"
#include "server/door/websocket_handler.h"

namespace tt::door {

// Pass to the handlers.
struct Serve {
  bool then_close = false;     // requested by the client
  bool stranger = false;       // not authenticated, but the path is open
  std::uint64_t max_body = 0;  // bytes
};
using Verdict = std::variant<Serve, Upgrade, Refusal, Reply>;

struct VerdictRules {
  HostRules hosts;
  DoorRules requests;
};

// `peer` is the key for counting wrong keys (peer_group()).
Verdict judge(const RequestHead& head, const VerdictRules& rules, Access& access,
              const std::string& peer, std::chrono::steady_clock::time_point now);

// Returns the Origin of the request if it is an allowed CORS origin, otherwise empty.
std::string_view cors_origin_of(const RequestHead& head, const DoorRules& rules);

}  // namespace tt::door
