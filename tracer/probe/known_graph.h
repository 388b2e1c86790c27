// A template of the loaded model with its derived accesses. Immutable; shared by the probe,
// the writer thread and live views.
//
// DerivedGraph (analysis/common/derived_graphs.h) is the same for a template of a session file, and
// has what only queries need: categories and heads. They stay apart because this one is made on the
// inference thread, while a graph is learned, and has to be cheap.
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

// Addresses of a KnownGraph's tensors. A new object is created whenever an address changes, so
// that equal pointers mean the same allocation.
using AddressesPtr = std::shared_ptr<const std::vector<std::uint64_t>>;

}  // namespace tt
