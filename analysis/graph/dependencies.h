// What each node of a graph needs, as edges from tensor to tensor.
//
// An edge says that the node which computes `to` needs what is in `from`:
//   - every source of the node, views and reshapes like any other;
//   - what its output is a view of, where no source leads there (an op that
//     writes into another tensor);
//   - what was written into the memory of a source since that source was made:
//     SET_ROWS writes the cache, and the view of the cache behind it in the
//     graph reads what was written, though ggml names no source for that. The
//     last writer is named; it depends on those before it in turn.
#pragma once

#include <vector>

#include "tracer/format/model/graph_template.h"

namespace tt {

struct Dependency {
  TensorId from, to;
  friend constexpr auto operator<=>(const Dependency&, const Dependency&) = default;
};

// In execution order of the nodes that compute `to`, each pair once per node.
std::vector<Dependency> dependencies_of(const GraphTemplate& graph);

}  // namespace tt
