// Data dependencies between the nodes of a graph, as edges from tensor to tensor.
//
// An edge means that the node which computes `to` depends on the contents of `from`, where
// `from` is one of:
//   - a source of the node; views and reshapes are treated like any other source;
//   - the tensor that the node's output is a view of, if no source has the same root (an op
//     that writes into another tensor);
//   - the output of the last node that wrote into the memory of a source after the source
//     was computed: SET_ROWS writes the cache, and a later view of the cache reads the
//     written data, although ggml lists no source for that. Earlier writers are reached
//     through the last one.
#pragma once

#include <vector>

#include "tracer/format/model/graph_template.h"

namespace tt {

struct Dependency {
  TensorId from, to;
  friend constexpr auto operator<=>(const Dependency&, const Dependency&) = default;
};

// In execution order of the nodes that compute `to`; each pair occurs once per node.
std::vector<Dependency> dependencies_of(const GraphTemplate& graph);

}  // namespace tt
