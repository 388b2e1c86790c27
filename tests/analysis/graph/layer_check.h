// Compares subgraphs of layers with a reference implementation of their definition
// (analysis/graph/layer_subgraph.h) that scans the whole graph.
#pragma once

#include "tracer/format/model/graph_template.h"

namespace tt::test {

// OfModel: layers of ops and nodes must match the tensor names, and each op within the layers
// must have a layer. AsGiven: layers are not checked.
enum class Layers { OfModel, AsGiven };

// Checks each layer of a graph, the nodes outside of layers, several layers and all layers:
// the subgraph has exactly the expected nodes and dependencies. Also checks that the graph
// collapsed by layer and component counts each node once. Returns the number of layers.
int expect_layer_subgraphs(const GraphTemplate& graph, Layers layers = Layers::OfModel);

}  // namespace tt::test
