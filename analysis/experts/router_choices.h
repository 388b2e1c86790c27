// The choices of a session's routers, one at a time. Any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "analysis/common/page.h"
#include "analysis/experts/routing.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

using RouterId = std::pair<LayerId, std::uint32_t>;  // layer, index within the layer

// The experts that one router chose for one token.
struct RouterChoice {
  RouterId router;
  std::uint32_t experts = 0;         // total experts
  std::uint32_t token = 0;           // index in the session; kNone: unknown
  std::span<const RoutingRow> rows;  // may contain expert numbers out of range
};

// In the order of the steps, within a step as routing_rows(). For the steps of one phase, or all.
std::expected<void, TraceError> for_each_choice(
    const SessionReader& reader, std::optional<Phase> phase, const ContinueCheck& keep_going,
    const std::function<void(const RouterChoice&)>& take);

}  // namespace tt
