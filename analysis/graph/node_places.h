// Where each node of a graph belongs: the op that it ran in, and its layer.
#pragma once

#include <vector>

#include "tracer/format/model/graph_template.h"

namespace tt {

// Per node; kNoOp: it was not executed (a view, a reshape, one that is left out).
std::vector<OpId> ops_of_nodes(const GraphTemplate& graph);

// Per node; kNoLayer: it belongs to none. What was executed has its op's layer.
// The rest does no work, and belongs
//   - as a view of a weight, a cache or an input to the layer whose nodes read
//     it, when they agree (a layer may read another one's cache), else to that
//     of its name;
//   - else to the layer of its name, of what it is made from, of what reads it:
//     the first of these that there is.
std::vector<LayerId> layers_of_nodes(const GraphTemplate& graph);

}  // namespace tt
