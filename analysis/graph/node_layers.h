// The op and the layer of each node of a graph.
#pragma once

#include <vector>

#include "tracer/format/model/graph_template.h"

namespace tt {

// Per node; kNoOp: not executed (a view, a reshape, or an unused node).
std::vector<OpId> ops_of_nodes(const GraphTemplate& graph);

// Per node; kNoLayer: outside of layers. An executed node has the layer of its op. The layer
// of a node that does no work is:
//   - for a view of a weight, cache or input: the layer of the nodes that read it, if they
//     all have the same one (a layer may read the cache of another), else the layer in its
//     name;
//   - otherwise: the layer in its name, else that of its sources, else that of its readers.
std::vector<LayerId> layers_of_nodes(const GraphTemplate& graph);

}  // namespace tt
