#include "tests/analysis/graph/layer_check.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/graph/graph_part.h"
#include "analysis/graph/node_layers.h"
#include "tracer/format/names/names.h"

namespace tt::test {
namespace {

using Tensors = std::set<TensorId>;
using Edges = std::set<std::pair<TensorId, TensorId>>;

// A graph with the predicates of the definition, each computed by a scan of the whole graph.
class NaiveGraph {
 public:
  explicit NaiveGraph(const GraphTemplate& graph) : graph_(graph), layers_(layers_of_nodes(graph)) {
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
  // Inputs, caches, constants outside of layers, and nodes computed from these only.
  bool is_infrastructure(TensorId t) const {
    if (is_external(t)) return true;
    if (layer(t) != kNoLayer) return false;
    return categories_of(graph_)[t.v] == Category::Infrastructure;
  }

 private:
  // Sources, the memory that a view refers to, and the last write into each of these.
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

Tensors members_of_layers(const GraphTemplate& graph, const NaiveGraph& naive,
                          const LayerSet& layers) {
  Tensors own;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const TensorId t{i};
    if (layers.has(naive.is_external(t) ? kNoLayer : naive.layer(t))) own.insert(t);
  }
  return own;
}

Expected expected_members(const GraphTemplate& graph, const NaiveGraph& naive,
                          const LayerSet& layers) {
  Expected members{.own = members_of_layers(graph, naive, layers), .inputs = {}, .outputs = {}};
  // Repeat until nothing is added.
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

// The category of a tensor in a selected layer or outside of layers.
Category category_of_member(const GraphTemplate& graph, const NaiveGraph& naive, TensorId t) {
  if (naive.is_external(t)) return Category::Infrastructure;
  return naive.layer(t) == kNoLayer ? categories_of(graph)[t.v] : Category::Layer;
}

void expect_members_and_edges(const GraphTemplate& graph, const NaiveGraph& naive,
                              const LayerSet& layers) {
  const LayerSubgraph found = layer_subgraph(graph, layers);
  const Expected expected = expected_members(graph, naive, layers);
  Tensors all = expected.own;
  all.insert(expected.inputs.begin(), expected.inputs.end());
  all.insert(expected.outputs.begin(), expected.outputs.end());

  std::map<TensorId, Category> members;
  std::uint32_t last = 0;
  for (const LayerNode& node : found.nodes) {
    const std::string& name = graph.tensor(node.tensor).name;
    EXPECT_TRUE(members.emplace(node.tensor, node.category).second) << name << " is a duplicate";
    EXPECT_TRUE(all.contains(node.tensor)) << name << " is unexpected";
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
    if (expected.own.contains(t)) {
      EXPECT_EQ(category, category_of_member(graph, naive, t)) << name;
      continue;
    }
    EXPECT_NE(category, Category::Layer) << name;
    EXPECT_TRUE(category != Category::CrossLayerInput || expected.inputs.contains(t)) << name;
    EXPECT_TRUE(category != Category::CrossLayerOutput || expected.outputs.contains(t)) << name;
    if (expected.inputs.contains(t)) {
      EXPECT_EQ(category == Category::Infrastructure, naive.is_infrastructure(t)) << name;
    }
  }

  Edges edges;
  for (const LayerEdge& edge : found.edges) {
    EXPECT_TRUE(edges.emplace(edge.from, edge.to).second)
        << graph.tensor(edge.from).name << " -> " << graph.tensor(edge.to).name
        << " is a duplicate";
    std::set<LayerId> ends = {naive.layer(edge.from), naive.layer(edge.to)};
    ends.erase(kNoLayer);
    bool crosses = ends.size() == 2;
    for (const LayerId end : ends) crosses |= !layers.has(end);
    EXPECT_EQ(edge.cross_layer, crosses);
  }
  Edges inside;
  for (const auto& edge : naive.edges()) {
    if (all.contains(edge.first) && all.contains(edge.second)) inside.insert(edge);
  }
  EXPECT_EQ(edges, inside);
}

// Each tensor is in exactly one layer or outside, and the subgraph of all layers has all of them.
void expect_partition(const GraphTemplate& graph, const NaiveGraph& naive,
                      const std::set<LayerId>& layers) {
  std::map<TensorId, int> times;
  const auto count = [&](LayerId layer) {
    for (const TensorId t : members_of_layers(graph, naive, LayerSet::one(layer))) ++times[t];
  };
  for (const LayerId layer : layers) count(layer);
  count(kNoLayer);
  EXPECT_EQ(times.size(), graph.tensors.size());
  for (const auto& [t, n] : times) EXPECT_EQ(n, 1) << graph.tensor(t).name;

  const LayerSubgraph whole = layer_subgraph(graph, LayerSet::all());
  EXPECT_EQ(whole.nodes.size(), graph.tensors.size());
  EXPECT_EQ(whole.edges.size(), naive.edges().size());
}

void expect_collapsed(const GraphTemplate& graph, const LayerSet& layers) {
  const LayerSubgraph subgraph = layer_subgraph(graph, layers);
  const CollapsedGraph groups = collapsed(graph, subgraph);
  std::set<std::tuple<LayerId, Component, Category>> kinds;
  std::uint64_t tensors = 0, ops = 0, weights = 0, bytes = 0, edges = 0;
  for (const NodeGroup& group : groups.groups) {
    EXPECT_TRUE(kinds.emplace(group.layer, group.component, group.category).second);
    tensors += group.tensors;
    ops += group.ops;
    weights += group.weights;
    bytes += group.weight_bytes.v;
  }
  EXPECT_EQ(tensors, subgraph.nodes.size());
  std::set<TensorId> members;
  for (const LayerNode& node : subgraph.nodes) members.insert(node.tensor);
  for (const Op& op : graph.ops) ops -= members.contains(graph.node(op.last()).output) ? 1U : 0U;
  EXPECT_EQ(ops, 0U);
  for (const LayerNode& node : subgraph.nodes) {
    const Tensor& tensor = graph.tensor(node.tensor);
    if (tensor.kind != TensorKind::Weight || node.node != kNoNode) continue;
    --weights;
    bytes -= tensor.file.length;
  }
  EXPECT_EQ(weights, 0U);
  EXPECT_EQ(bytes, 0U);

  // The ends of an edge between two layers are in two groups.
  std::set<std::pair<LayerId, LayerId>> between, found;
  std::map<TensorId, LayerId> layer_of;
  for (const LayerNode& node : subgraph.nodes) layer_of[node.tensor] = node.layer;
  for (const LayerEdge& edge : subgraph.edges) {
    if (layer_of[edge.from] != layer_of[edge.to])
      between.emplace(layer_of[edge.from], layer_of[edge.to]);
  }
  for (const GroupEdge& edge : groups.edges) {
    EXPECT_NE(edge.from, edge.to);
    edges += edge.edges;
    const LayerId from = groups.groups[edge.from].layer, to = groups.groups[edge.to].layer;
    if (from != to) found.emplace(from, to);
  }
  EXPECT_EQ(found, between) << "edges between layers are kept";
  EXPECT_LE(edges, subgraph.edges.size());
}

// Checks the values that the reference takes from node_places.h against the graph.
void expect_node_places(const GraphTemplate& graph, const NaiveGraph& naive, LayerId layer) {
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

int expect_layer_subgraphs(const GraphTemplate& graph, Layers given) {
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
        << "op " << i << " is between ops of layers but has no layer: "
        << graph.tensor(graph.node(graph.ops[i].last()).output).name;
  }
  const NaiveGraph naive(graph);
  for (const LayerId layer : layers) {
    SCOPED_TRACE("layer " + std::to_string(layer.v));
    if (given == Layers::OfModel) expect_node_places(graph, naive, layer);
    expect_members_and_edges(graph, naive, LayerSet::one(layer));
  }
  expect_members_and_edges(graph, naive, {.outside = true});
  expect_members_and_edges(graph, naive, LayerSet::all());
  if (!layers.empty()) {
    const std::int32_t from = layers.begin()->v;
    const LayerSet some = {.ranges = {{from, from + 1}, {from + 3, from + 3}},
                           .outside = graph.nodes.size() % 2 == 0};
    expect_members_and_edges(graph, naive, some);
    expect_collapsed(graph, some);
  }
  expect_partition(graph, naive, layers);
  expect_collapsed(graph, LayerSet::all());
  return static_cast<int>(layers.size());
}

}  // namespace tt::test
