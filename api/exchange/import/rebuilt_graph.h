// A graph whose accesses are given rows: see session_builder.h. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "api/exchange/import/session_builder.h"

namespace tt::exchange {

struct RebuiltGraph {
  GraphTemplate graph;                   // with a fingerprint of all that it holds
  std::vector<std::uint64_t> addresses;  // per tensor
  std::vector<SlotValues> slots;         // of this step
};

// Steps of the same structure give equal graphs: what varies from step to step
// (experts, rows of a matrix, cells of the cache) is in the slots.
RebuiltGraph rebuilt_graph(const ImportedStep& step, const SessionInfo& session);

}  // namespace tt::exchange
