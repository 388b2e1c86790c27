// The second way to the subgraph of layers: its definition (analysis/graph/layer_subgraph.h)
// taken word by word, with sets and scans of the whole graph instead of indices.
#pragma once

#include "tracer/format/model/graph_template.h"

namespace tt::test {

// OfModel: the layers of ops and nodes are held against the names of tensors, and
// every op inside the layers has one. AsGiven: they are taken as they are.
enum class Layers { OfModel, AsGiven };

// Every layer of a graph, what is outside of them, some layers at once, and all:
// no node of it and no dependency is missing, and nothing is in that should not
// be. And put together by layer and component, all are counted once. Returns how
// many layers it has.
int expect_whole_layers(const GraphTemplate& graph, Layers layers = Layers::OfModel);

}  // namespace tt::test
