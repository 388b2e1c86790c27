// What the door does with a request, told by its head alone. Everything that
// decides who may do what is asked here, in one order, before a handler or the
// WebSocket service sees the request:
//   1. its Host is ours, its length beyond doubt;
//   2. no page of another site sent it (Origin, Sec-Fetch-Site);
//   3. who sends it is known, or may ask this anyway;
//   4. its body is of a type and size that is taken.
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

// Let in, to the handlers.
struct Serve {
  bool then_close = false;     // the client asked for it
  bool stranger = false;       // not known; it may ask this all the same
  std::uint64_t max_body = 0;  // bytes
};
using Verdict = std::variant<Serve, Upgrade, Refusal, Reply>;

struct VerdictRules {
  HostRules hosts;
  DoorRules requests;
};

// `peer` names who sent it for counting wrong keys (peer_group()).
Verdict judge(const RequestHead& head, const VerdictRules& rules, Access& access,
              const std::string& peer, std::chrono::steady_clock::time_point now);

// The Origin of this request when it is one of those that may read answers.
std::string_view cors_origin_of(const RequestHead& head, const DoorRules& rules);

}  // namespace tt::door
