// Some layers of a graph as a graph of their own: their nodes, what they take
// from outside and what they give to it, and every edge among these. Usually one
// layer; also several, what is outside of the layers, or everything.
//
// Which tensors are in, for chosen layers L, and as what:
//
//   layer               what the nodes of L compute (node_places.h says which
//                       these are), views and reshapes included; the weights of L.
//   infrastructure      what nodes of L read and no layer makes: inputs, caches
//                       (of whatever layer), constants that layers share, and
//                       what is computed from such things alone, with all that
//                       it is computed from.
//   embedding, output   what nodes of L read or what reads them, outside of any
//                       layer, before the first and behind the last one; their
//                       weights where L reads them.
//   cross_layer_input   what else nodes of L read: results and weights of another
//                       layer.
//   cross_layer_output  what else reads the results of L: nodes of another layer.
//
// "Outside" counts as a layer here: chosen, all that belongs to none and every
// input and cache are in, as what the whole graph has them (categories_of()).
// So each tensor is one of the chosen for exactly one layer, or for "outside",
// and where all are chosen each is in and none is a neighbour.
//
// "Read" is what dependencies.h says, so residual edges that skip nodes are in,
// and so is a cache that one layer writes and another one reads. Neighbours are
// direct ones. But a neighbour that does no work hides the one behind it: then
// what it is a view of, or what reads it, is in, too, and so on up to a tensor
// that is computed or a leaf. What is both input and output counts as input.
#pragma once

#include <vector>

#include "analysis/common/layer_set.h"
#include "tracer/format/access/access.h"

namespace tt {

struct LayerNode {
  TensorId tensor;
  NodeId node = kNoNode;     // that computes it; kNoNode: a leaf (weight, input, cache)
  OpId op = kNoOp;           // that the node ran in; kNoOp: it does no work
  LayerId layer = kNoLayer;  // of the node; of a leaf, the tensor's
  Category category = Category::Layer;
  friend bool operator==(const LayerNode&, const LayerNode&) = default;
};

struct LayerEdge {
  TensorId from, to;
  // Its ends belong to two layers, or one of them to a layer that is not chosen.
  bool cross_layer = false;
  friend bool operator==(const LayerEdge&, const LayerEdge&) = default;
};

struct LayerSubgraph {
  std::vector<LayerNode> nodes;  // in execution order, leaves before their first reader
  std::vector<LayerEdge> edges;  // in execution order of `to`
  friend bool operator==(const LayerSubgraph&, const LayerSubgraph&) = default;
};

// Without nodes: the graph has nothing of these layers.
LayerSubgraph layer_subgraph(const GraphTemplate& graph, const LayerSet& layers);

}  // namespace tt
