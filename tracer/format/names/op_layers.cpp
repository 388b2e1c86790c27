// Assigns layers to ops: by name where possible, else by data flow and neighbours.
#include <algorithm>
#include <vector>

#include "tracer/format/names/names.h"

namespace tt {
namespace {

LayerId layer_of_weights(const GraphTemplate& graph, const Op& op) {
  for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
    for (const TensorId source : graph.nodes[n].src) {
      if (source == kNoTensor) continue;
      const Tensor& root = graph.tensor(graph.root(source));
      if (root.kind == TensorKind::Weight && root.layer != kNoLayer) return root.layer;
    }
  }
  return kNoLayer;
}

// For each tensor, the layers of its producer and consumers. Views and ops without a layer
// are skipped: the layer of the next op with a layer is used.
class DataFlow {
 public:
  explicit DataFlow(const GraphTemplate& graph) : graph_(graph), tensors_(graph.tensors.size()) {
    std::vector<LayerId> layers(graph.nodes.size(), kNoLayer);
    std::vector<bool> computed(graph.nodes.size());
    for (const Op& op : graph.ops) {
      for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
        layers[n] = op.layer;
        computed[n] = true;
      }
    }
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      Neighbours& out = tensors_[graph.nodes[n].output.v];
      out.producer_layer = layers[n];
      for (const TensorId source : graph.nodes[n].src) {
        if (source == kNoTensor) continue;
        Neighbours& in = tensors_[source.v];
        ++in.consumers;
        if (layers[n] == kNoLayer)
          out.producer_layer = std::max(out.producer_layer, in.producer_layer);
        if (!computed[n] && out.view_source == kNoTensor) out.view_source = source;
      }
    }
    for (std::size_t n = graph.nodes.size(); n-- > 0;) {
      const Neighbours& out = tensors_[graph.nodes[n].output.v];
      const bool named = layers[n] != kNoLayer;
      for (const TensorId source : graph.nodes[n].src) {
        if (source == kNoTensor) continue;
        tensors_[source.v].add_consumer(named ? layers[n] : out.first_consumer);
        tensors_[source.v].add_consumer(named ? layers[n] : out.last_consumer);
      }
    }
  }

  // The layer, if the same one produces the op's sources and consumes its result.
  LayerId enclosing_layer(const Op& op) const {
    const Neighbours& out = tensors_[graph_.node(op.last()).output.v];
    return out.producer_layer == out.first_consumer ? out.producer_layer : kNoLayer;
  }

  // Consumed by several layers, produced by none.
  bool is_shared(const Op& op) const {
    const Neighbours& out = tensors_[graph_.node(op.last()).output.v];
    return out.producer_layer == kNoLayer && out.first_consumer != out.last_consumer;
  }

  // The producing layer, if the op is the only consumer of a source (a residual sum at the
  // end of a layer); else the first consuming layer (a norm at the begin of a layer).
  LayerId layer_of(const Op& op) const {
    const Neighbours& out = tensors_[graph_.node(op.last()).output.v];
    if (is_shared(op)) return kNoLayer;
    if (out.producer_layer == out.first_consumer || is_only_consumer(op, out.producer_layer))
      return out.producer_layer;
    return out.first_consumer;
  }

 private:
  struct Neighbours {
    LayerId producer_layer = kNoLayer;                            // last producing layer
    LayerId first_consumer = kNoLayer, last_consumer = kNoLayer;  // consuming layers
    std::uint32_t consumers = 0;                                  // consuming nodes
    TensorId view_source = kNoTensor;                             // views: the source
    void add_consumer(LayerId layer) {
      if (layer == kNoLayer) return;
      first_consumer = first_consumer == kNoLayer ? layer : std::min(first_consumer, layer);
      last_consumer = std::max(last_consumer, layer);
    }
  };

  bool is_only_consumer(const Op& op, LayerId layer) const {
    for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
      for (TensorId source : graph_.nodes[n].src) {
        if (source == kNoTensor || tensors_[source.v].producer_layer != layer) continue;
        // Views may be cyclic in an untrusted file: limit the number of iterations.
        for (std::size_t i = 0; i < tensors_.size() && tensors_[source.v].consumers == 1; ++i) {
          if (tensors_[source.v].view_source == kNoTensor) return true;
          source = tensors_[source.v].view_source;
        }
      }
    }
    return false;
  }

  const GraphTemplate& graph_;
  std::vector<Neighbours> tensors_;
};

}  // namespace

void assign_op_layers(GraphTemplate& graph) {
  const auto has_layer = [](const Op& op) { return op.layer != kNoLayer; };
  for (Op& op : graph.ops) op.layer = graph.tensor(graph.node(op.last()).output).layer;
  // Data flow before weights, because layers may share weights.
  const DataFlow named(graph);
  for (Op& op : graph.ops) {
    if (!has_layer(op)) op.layer = named.enclosing_layer(op);
    if (!has_layer(op)) op.layer = layer_of_weights(graph, op);
  }
  // An op without a layer between two ops of the same layer belongs to that layer, unless
  // several layers consume its result and none produces its sources (a mask that is cast once).
  const DataFlow known(graph);
  for (std::size_t i = 0; i < graph.ops.size();) {
    if (graph.ops[i].layer != kNoLayer) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < graph.ops.size() && graph.ops[end].layer == kNoLayer) ++end;
    if (i > 0 && end < graph.ops.size() && graph.ops[i - 1].layer == graph.ops[end].layer) {
      for (std::size_t k = i; k < end; ++k) {
        if (!known.is_shared(graph.ops[k])) graph.ops[k].layer = graph.ops[i - 1].layer;
      }
    }
    i = end;
  }
  // The remaining ops inside the range of layers: by data flow.
  const auto first = std::ranges::find_if(graph.ops, has_layer);
  const auto last = std::ranges::find_if(graph.ops.rbegin(), graph.ops.rend(), has_layer).base();
  if (first == graph.ops.end()) return;
  const DataFlow flow(graph);
  for (auto op = first; op != last; ++op) {
    if (!has_layer(*op)) op->layer = flow.layer_of(*op);
  }
}

}  // namespace tt
