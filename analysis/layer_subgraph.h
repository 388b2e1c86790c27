// One layer of a graph as a graph of its own: its nodes, what they take from
// outside and what they give to it, and every edge among these.
//
// Which tensors are in, for a layer L, and as what:
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
// "Read" is what dependencies.h says, so residual edges that skip nodes are in,
// and so is a cache that one layer writes and another one reads. Neighbours are
// direct ones. But a neighbour that does no work hides the one behind it: then
// what it is a view of, or what reads it, is in, too, and so on up to a tensor
// that is computed or a leaf. What is both input and output counts as input.
#pragma once

#include <expected>
#include <memory>
#include <vector>

#include "analysis/dependencies.h"
#include "tracer/format/access.h"
#include "tracer/format/session_reader.h"

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
  bool cross_layer = false;  // one of its ends belongs to another layer
  friend bool operator==(const LayerEdge&, const LayerEdge&) = default;
};

struct LayerSubgraph {
  std::vector<LayerNode> nodes;  // in execution order, leaves before their first reader
  std::vector<LayerEdge> edges;  // in execution order of `to`
  friend bool operator==(const LayerSubgraph&, const LayerSubgraph&) = default;
};

// Without nodes: the graph has nothing of this layer.
LayerSubgraph layer_subgraph(const GraphTemplate& graph, LayerId layer);

// That of the graph that a step evaluated.
struct StepLayer {
  StepId step;
  TemplateId id;
  std::shared_ptr<const GraphTemplate> graph;
  LayerId layer;
  std::uint32_t layers = 0;  // of the model
  LayerSubgraph subgraph;
};
// NotFound: no such step or layer, or the step's graph was not recorded.
std::expected<StepLayer, TraceError> layer_of_step(const SessionReader& reader, StepId step,
                                                   LayerId layer);

}  // namespace tt
