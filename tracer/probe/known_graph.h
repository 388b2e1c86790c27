// A template of the loaded model with what is derived from it once. Immutable;
// shared by the probe, the writer thread and live views.
#pragma once

#include <memory>
#include <vector>

#include "tracer/format/access/access.h"
#include "tracer/format/model/graph_template.h"

namespace tt {

struct KnownGraph {
  GraphTemplate graph;
  std::vector<Access> accesses;  // accesses_of(graph)
};

using KnownGraphPtr = std::shared_ptr<const KnownGraph>;

// Addresses of a KnownGraph's tensors; a new object whenever one changed, so
// that the pointer says "same allocation".
using AddressesPtr = std::shared_ptr<const std::vector<std::uint64_t>>;

}  // namespace tt
