// The layers of ops: names say most of it, neighbours and data the rest.
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

// The layers of the ops around each tensor; views, and ops that have no layer
// themselves, are looked through.
class Flow {
 public:
  explicit Flow(const GraphTemplate& graph) : graph_(graph), tensors_(graph.tensors.size()) {
    std::vector<LayerId> layers(graph.nodes.size(), kNoLayer);
    std::vector<bool> works(graph.nodes.size());
    for (const Op& op : graph.ops) {
      for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
        layers[n] = op.layer;
        works[n] = true;
      }
    }
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      Around& out = tensors_[graph.nodes[n].output.v];
      out.made_in = layers[n];
      for (const TensorId source : graph.nodes[n].src) {
        if (source == kNoTensor) continue;
        Around& in = tensors_[source.v];
        ++in.readers;
        if (layers[n] == kNoLayer) out.made_in = std::max(out.made_in, in.made_in);
        if (!works[n] && out.seen_through == kNoTensor) out.seen_through = source;
      }
    }
    for (std::size_t n = graph.nodes.size(); n-- > 0;) {
      const Around& out = tensors_[graph.nodes[n].output.v];
      const bool named = layers[n] != kNoLayer;
      for (const TensorId source : graph.nodes[n].src) {
        if (source == kNoTensor) continue;
        tensors_[source.v].add_reader(named ? layers[n] : out.first_reader);
        tensors_[source.v].add_reader(named ? layers[n] : out.last_reader);
      }
    }
  }

  // Made from results of the layer that reads it.
  LayerId surrounding(const Op& op) const {
    const Around& out = tensors_[graph_.node(op.last()).output.v];
    return out.made_in == out.first_reader ? out.made_in : kNoLayer;
  }

  // Read by several layers, made from none.
  bool serves_several(const Op& op) const {
    const Around& out = tensors_[graph_.node(op.last()).output.v];
    return out.made_in == kNoLayer && out.first_reader != out.last_reader;
  }

  // That of the last layer before it, where it goes on with something that
  // nobody else reads (a residual sum at a layer's end), else that of the first
  // layer which reads its result (a norm at a layer's begin).
  LayerId layer_of(const Op& op) const {
    const Around& out = tensors_[graph_.node(op.last()).output.v];
    if (serves_several(op)) return kNoLayer;
    if (out.made_in == out.first_reader || goes_on_alone(op, out.made_in)) return out.made_in;
    return out.first_reader;
  }

 private:
  struct Around {
    LayerId made_in = kNoLayer;                               // the last of those before
    LayerId first_reader = kNoLayer, last_reader = kNoLayer;  // of those behind
    std::uint32_t readers = 0;                                // nodes
    TensorId seen_through = kNoTensor;                        // of a view: its source
    void add_reader(LayerId layer) {
      if (layer == kNoLayer) return;
      first_reader = first_reader == kNoLayer ? layer : std::min(first_reader, layer);
      last_reader = std::max(last_reader, layer);
    }
  };

  bool goes_on_alone(const Op& op, LayerId layer) const {
    for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
      for (TensorId source : graph_.nodes[n].src) {
        if (source == kNoTensor || tensors_[source.v].made_in != layer) continue;
        // A file may hold a view of itself: no more steps than there are tensors.
        for (std::size_t i = 0; i < tensors_.size() && tensors_[source.v].readers == 1; ++i) {
          if (tensors_[source.v].seen_through == kNoTensor) return true;
          source = tensors_[source.v].seen_through;
        }
      }
    }
    return false;
  }

  const GraphTemplate& graph_;
  std::vector<Around> tensors_;
};

}  // namespace

void assign_op_layers(GraphTemplate& graph) {
  const auto has_layer = [](const Op& op) { return op.layer != kNoLayer; };
  for (Op& op : graph.ops) op.layer = graph.tensor(graph.node(op.last()).output).layer;
  // Data before weights: layers may share these.
  const Flow named(graph);
  for (Op& op : graph.ops) {
    if (!has_layer(op)) op.layer = named.surrounding(op);
    if (!has_layer(op)) op.layer = layer_of_weights(graph, op);
  }
  // An op without a layer between two ops of one layer belongs to that layer,
  // unless others read its result, too, and it none of theirs: a mask that is
  // cast once for all.
  const Flow known(graph);
  for (std::size_t i = 0; i < graph.ops.size();) {
    if (graph.ops[i].layer != kNoLayer) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < graph.ops.size() && graph.ops[end].layer == kNoLayer) ++end;
    if (i > 0 && end < graph.ops.size() && graph.ops[i - 1].layer == graph.ops[end].layer) {
      for (std::size_t k = i; k < end; ++k) {
        if (!known.serves_several(graph.ops[k])) graph.ops[k].layer = graph.ops[i - 1].layer;
      }
    }
    i = end;
  }
  // What is left inside the layers follows its data.
  const auto first = std::ranges::find_if(graph.ops, has_layer);
  const auto last = std::ranges::find_if(graph.ops.rbegin(), graph.ops.rend(), has_layer).base();
  if (first == graph.ops.end()) return;
  const Flow flow(graph);
  for (auto op = first; op != last; ++op) {
    if (!has_layer(*op)) op->layer = flow.layer_of(*op);
  }
}

}  // namespace tt
