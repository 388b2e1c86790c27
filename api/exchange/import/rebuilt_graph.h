// Rebuilds a graph that produces the given rows as accesses; see session_builder.h. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "api/exchange/import/session_builder.h"

namespace tt::exchange {

struct RebuiltGraph {
  GraphTemplate graph;                   // the fingerprint covers the whole graph
  std::vector<std::uint64_t> addresses;  // per tensor
  std::vector<SlotValues> slots;         // of this step
};

// Steps of the same structure give equal graphs. What varies per step (experts, matrix rows,
// cache cells) is in the slots.
RebuiltGraph rebuilt_graph(const ImportedStep& step, const SessionInfo& session);

}  // namespace tt::exchange
