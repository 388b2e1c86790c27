// The subgraph of selected layers: their nodes, their external inputs and outputs, and all
// edges among these. The selection is usually one layer; it can also be several layers,
// everything outside of layers, or the complete graph.
//
// The tensors of the subgraph for selected layers L, by category:
//
//   layer               outputs of the nodes of L (see node_places.h), including views and
//                       reshapes; the weights of L.
//   infrastructure      tensors that nodes of L read and that no layer computes: inputs,
//                       caches (of any layer), constants shared by layers, and tensors
//                       computed only from these, with all their sources.
//   embedding, output   tensors outside of layers, before the first or after the last
//                       layer, that nodes of L read or that read them; their weights if L
//                       reads them.
//   cross_layer_input   other tensors that nodes of L read: results and weights of another
//                       layer.
//   cross_layer_output  other tensors that read the results of L: nodes of another layer.
//
// "Outside" counts as a layer here. If it is selected, the subgraph contains everything that
// belongs to no layer and every input and cache, with their categories in the complete graph
// (categories_of()). So each tensor belongs to exactly one layer or to "outside"; if all are
// selected, every tensor is included and none is a neighbour.
//
// "Read" is defined by dependencies.h, so residual edges that skip nodes are included, and
// so is a cache that one layer writes and another one reads. Only direct neighbours are
// included, with one exception: a neighbour that does no work (a view or reshape) is
// followed to its source, or to its readers, up to the first computed tensor or leaf. A
// tensor that is both input and output counts as input.
#pragma once

#include <vector>

#include "analysis/common/layer_set.h"
#include "tracer/format/access/access.h"

namespace tt {

struct LayerNode {
  TensorId tensor;
  NodeId node = kNoNode;     // computes the tensor; kNoNode: a leaf (weight, input, cache)
  OpId op = kNoOp;           // executed the node; kNoOp: the node does no work
  LayerId layer = kNoLayer;  // of the node; for a leaf, of the tensor
  Category category = Category::Layer;
  friend bool operator==(const LayerNode&, const LayerNode&) = default;
};

struct LayerEdge {
  TensorId from, to;
  // The ends are in two different layers, or one of them is in a layer that is not selected.
  bool cross_layer = false;
  friend bool operator==(const LayerEdge&, const LayerEdge&) = default;
};

struct LayerSubgraph {
  std::vector<LayerNode> nodes;  // in execution order, leaves before their first reader
  std::vector<LayerEdge> edges;  // in execution order of `to`
  friend bool operator==(const LayerSubgraph&, const LayerSubgraph&) = default;
};

// Empty if the graph has nothing of these layers.
LayerSubgraph layer_subgraph(const GraphTemplate& graph, const LayerSet& layers);

}  // namespace tt
