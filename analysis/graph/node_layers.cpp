#include "analysis/graph/node_layers.h"

#include <algorithm>

namespace tt {

namespace {

// The common layer of all nodes that read a tensor.
class Readers {
 public:
  void add(LayerId layer) {
    if (!any_) layer_ = layer;
    if (layer != layer_) layer_ = kNoLayer;  // they differ
    any_ = true;
  }
  LayerId layer() const { return layer_; }  // kNoLayer: none, or the layers differ

 private:
  bool any_ = false;
  LayerId layer_ = kNoLayer;
};

LayerId first_of(LayerId a, LayerId b) { return a == kNoLayer ? b : a; }

}  // namespace

std::vector<OpId> ops_of_nodes(const GraphTemplate& graph) {
  std::vector<OpId> ops(graph.nodes.size(), kNoOp);
  for (std::uint32_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    std::fill_n(ops.begin() + op.first.v, op.nodes, OpId{i});
  }
  return ops;
}

std::vector<LayerId> layers_of_nodes(const GraphTemplate& graph) {
  const std::vector<OpId> ops = ops_of_nodes(graph);
  const auto root_kind = [&](const Node& node) {
    return graph.tensor(graph.root(node.output)).kind;
  };
  std::vector<LayerId> layers(graph.nodes.size(), kNoLayer);

  // Forward pass: layers from ops, names and sources.
  std::vector<LayerId> made_in(graph.tensors.size(), kNoLayer);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (ops[n] != kNoOp) {
      layers[n] = graph.op(ops[n]).layer;
    } else if (root_kind(node) == TensorKind::Intermediate) {
      layers[n] = graph.tensor(node.output).layer;
      for (const TensorId source : node.src) {
        if (source != kNoTensor) layers[n] = first_of(layers[n], made_in[source.v]);
      }
    }
    made_in[node.output.v] = layers[n];
  }

  // Backward pass: layers from readers.
  std::vector<Readers> readers(graph.tensors.size());
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    if (ops[n] == kNoOp) {
      layers[n] = first_of(layers[n], readers[node.output.v].layer());
      if (root_kind(node) != TensorKind::Intermediate)
        layers[n] = first_of(layers[n], graph.tensor(node.output).layer);
    }
    for (const TensorId source : node.src) {
      if (source != kNoTensor) readers[source.v].add(layers[n]);
    }
  }
  return layers;
}

}  // namespace tt
