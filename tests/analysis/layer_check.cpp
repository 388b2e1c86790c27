#include "tests/analysis/layer_check.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "analysis/layer_subgraph.h"
#include "analysis/node_places.h"
#include "tracer/format/names.h"

namespace tt::testing {
namespace {

using Tensors = std::set<TensorId>;
using Edges = std::set<std::pair<TensorId, TensorId>>;

// A graph and the questions that the definition asks of it, each answered by looking at all of it.
class Naive {
 public:
  explicit Naive(const GraphTemplate& graph) : graph_(graph), layers_(layers_of_nodes(graph)) {
    for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
      for (const TensorId read : reads_of(n)) edges_.emplace(read, graph.nodes[n].output);
    }
  }

  const Edges& edges() const { return edges_; }
  std::uint32_t maker(TensorId t) const {
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].output == t) return n;
    }
    return kNone;
  }
  bool is_leaf(TensorId t) const { return maker(t) == kNone; }
  bool is_executed(TensorId t) const {
    for (const Op& op : graph_.ops) {
      for (std::uint32_t n = op.first.v; n < op.first.v + op.nodes; ++n) {
        if (graph_.nodes[n].output == t) return true;
      }
    }
    return false;
  }
  LayerId layer(TensorId t) const {
    return is_leaf(t) ? graph_.tensor(t).layer : layers_[maker(t)];
  }
  bool is_external(TensorId t) const {
    const TensorKind kind = graph_.tensor(t).kind;
    return is_leaf(t) && (kind == TensorKind::Kv || kind == TensorKind::Input);
  }
  Tensors sources(TensorId t) const {
    Tensors out;
    for (const auto& [from, to] : edges_) {
      if (to == t) out.insert(from);
    }
    return out;
  }
  Tensors readers(TensorId t) const {
    Tensors out;
    for (const auto& [from, to] : edges_) {
      if (from == t) out.insert(to);
    }
    return out;
  }
  // Inputs, caches, constants of no layer, and what is computed from such things alone.
  bool is_infrastructure(TensorId t) const {
    if (is_external(t)) return true;
    if (layer(t) != kNoLayer) return false;
    return category_of(graph_, t) == Category::Infrastructure;
  }

 private:
  // Sources, the memory that a view shows, and the last write into each of these.
  Tensors reads_of(std::uint32_t n) const {
    const TensorId out = graph_.nodes[n].output;
    Tensors named;
    for (const TensorId source : graph_.nodes[n].src) {
      if (source != kNoTensor) named.insert(source);
    }
    bool shows_root = graph_.root(out) == out;
    for (const TensorId source : named) shows_root |= graph_.root(source) == graph_.root(out);
    if (!shows_root) named.insert(graph_.root(out));
    Tensors all = named;
    for (const TensorId source : named) {
      for (std::uint32_t before = n; before-- > 0;) {
        const Node& node = graph_.nodes[before];
        if (node.output == source) break;
        if (node.computed && graph_.root(node.output) == graph_.root(source)) {
          all.insert(node.output);
          break;
        }
      }
    }
    all.erase(out);
    return all;
  }

  const GraphTemplate& graph_;
  std::vector<LayerId> layers_;
  Edges edges_;
};

struct Expected {
  Tensors own, inputs, outputs;
};

Expected expected_members(const GraphTemplate& graph, const Naive& naive, LayerId layer) {
  Expected members;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const TensorId t{i};
    if (naive.layer(t) == layer && !naive.is_external(t)) members.own.insert(t);
  }
  // Whatever grows no more is complete.
  for (std::size_t before = 0; before != members.inputs.size() + 1;) {
    before = members.inputs.size() + 1;
    Tensors reading = members.own;
    for (const TensorId t : members.inputs) {
      const bool view = !naive.is_leaf(t) && !naive.is_executed(t);
      if (view || naive.is_infrastructure(t)) reading.insert(t);
    }
    for (const auto& [from, to] : naive.edges()) {
      if (reading.contains(to) && !members.own.contains(from)) members.inputs.insert(from);
    }
  }
  for (std::size_t before = 0; before != members.outputs.size() + 1;) {
    before = members.outputs.size() + 1;
    Tensors read;
    for (const TensorId t : members.own) {
      if (!naive.is_leaf(t)) read.insert(t);
    }
    for (const TensorId t : members.outputs) {
      if (!naive.is_executed(t)) read.insert(t);
    }
    for (const auto& [from, to] : naive.edges()) {
      if (read.contains(from) && !members.own.contains(to)) members.outputs.insert(to);
    }
  }
  return members;
}

void expect_whole_layer(const GraphTemplate& graph, const Naive& naive, LayerId layer) {
  const LayerSubgraph found = layer_subgraph(graph, layer);
  const Expected expected = expected_members(graph, naive, layer);
  Tensors all = expected.own;
  all.insert(expected.inputs.begin(), expected.inputs.end());
  all.insert(expected.outputs.begin(), expected.outputs.end());

  std::map<TensorId, Category> members;
  std::uint32_t last = 0;
  for (const LayerNode& node : found.nodes) {
    const std::string& name = graph.tensor(node.tensor).name;
    EXPECT_TRUE(members.emplace(node.tensor, node.category).second) << name << " is in twice";
    EXPECT_TRUE(all.contains(node.tensor)) << name << " should not be in";
    EXPECT_EQ(node.node.v, naive.maker(node.tensor)) << name;
    EXPECT_EQ(node.op != kNoOp, naive.is_executed(node.tensor)) << name;
    if (node.node != kNoNode) {
      EXPECT_GE(node.node.v, last) << name << " is out of order";
      last = node.node.v;
    }
  }
  for (const TensorId t : all) {
    EXPECT_TRUE(members.contains(t)) << graph.tensor(t).name << " is missing";
  }
  for (const auto& [t, category] : members) {
    const std::string& name = graph.tensor(t).name;
    EXPECT_EQ(category == Category::Layer, expected.own.contains(t)) << name;
    EXPECT_TRUE(category != Category::CrossLayerInput || expected.inputs.contains(t)) << name;
    EXPECT_TRUE(category != Category::CrossLayerOutput || expected.outputs.contains(t)) << name;
    if (expected.inputs.contains(t)) {
      EXPECT_EQ(category == Category::Infrastructure, naive.is_infrastructure(t)) << name;
    }
  }

  Edges edges;
  for (const LayerEdge& edge : found.edges) {
    EXPECT_TRUE(edges.emplace(edge.from, edge.to).second)
        << graph.tensor(edge.from).name << " -> " << graph.tensor(edge.to).name << " twice";
    const auto elsewhere = [&](TensorId t) {
      return naive.layer(t) != kNoLayer && naive.layer(t) != layer;
    };
    EXPECT_EQ(edge.cross_layer, elsewhere(edge.from) || elsewhere(edge.to));
  }
  Edges inside;
  for (const auto& edge : naive.edges()) {
    if (all.contains(edge.first) && all.contains(edge.second)) inside.insert(edge);
  }
  EXPECT_EQ(edges, inside);
}

// What the naive way takes from node_places.h is held against what the graph itself says.
void expect_places(const GraphTemplate& graph, const Naive& naive, LayerId layer) {
  for (const Op& op : graph.ops) {
    for (std::uint32_t n = op.first.v; op.layer == layer && n <= op.last().v; ++n)
      EXPECT_EQ(naive.layer(graph.nodes[n].output), layer);
  }
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (layer_of(tensor.name) != layer || tensor.kind == TensorKind::Kv) continue;
    EXPECT_EQ(naive.layer(TensorId{i}), layer) << tensor.name;
  }
}

}  // namespace

int expect_whole_layers(const GraphTemplate& graph, Layers given) {
  std::set<LayerId> layers;
  std::size_t first = graph.ops.size(), last = 0;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    if (graph.ops[i].layer == kNoLayer) continue;
    layers.insert(graph.ops[i].layer);
    first = std::min(first, i);
    last = i;
  }
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.layer != kNoLayer) layers.insert(tensor.layer);
  }
  for (std::size_t i = first; i <= last && i < graph.ops.size(); ++i) {
    EXPECT_TRUE(given == Layers::AsGiven || graph.ops[i].layer != kNoLayer)
        << "op " << i << ", inside the layers, belongs to none: "
        << graph.tensor(graph.node(graph.ops[i].last()).output).name;
  }
  const Naive naive(graph);
  for (const LayerId layer : layers) {
    SCOPED_TRACE("layer " + std::to_string(layer.v));
    if (given == Layers::OfModel) expect_places(graph, naive, layer);
    expect_whole_layer(graph, naive, layer);
  }
  return static_cast<int>(layers.size());
}

}  // namespace tt::testing
