#include "analysis/layer_subgraph.h"

#include <algorithm>
#include <format>
#include <optional>
#include <utility>

#include "analysis/node_places.h"

namespace tt {

namespace {

// A graph as its tensors see it.
struct Links {
  explicit Links(const GraphTemplate& g)
      : graph(g),
        edges(dependencies_of(g)),
        ops(ops_of_nodes(g)),
        layers(layers_of_nodes(g)),
        categories(categories_of(g)),
        makers(g.tensors.size(), kNoNode),
        sources(g.tensors.size()),
        readers(g.tensors.size()) {
    for (std::uint32_t n = 0; n < g.nodes.size(); ++n) makers[g.nodes[n].output.v] = NodeId{n};
    for (const Dependency& edge : edges) {
      sources[edge.to.v].push_back(edge.from);
      readers[edge.from.v].push_back(edge.to);
    }
  }
  bool is_leaf(TensorId t) const { return makers[t.v] == kNoNode; }
  bool does_no_work(TensorId t) const { return !is_leaf(t) && ops[makers[t.v].v] == kNoOp; }
  LayerId layer(TensorId t) const {
    return is_leaf(t) ? graph.tensor(t).layer : layers[makers[t.v].v];
  }

  const GraphTemplate& graph;
  std::vector<Dependency> edges;
  std::vector<OpId> ops;        // per node
  std::vector<LayerId> layers;  // per node
  std::vector<Category> categories;
  std::vector<NodeId> makers;  // per tensor
  std::vector<std::vector<TensorId>> sources, readers;
};

// The category of each tensor that is in.
using Members = std::vector<std::optional<Category>>;

// As what a tensor of another layer, or of none, is in; `side` where nothing else says it.
Category category_outside(const Links& links, TensorId t, Category side) {
  const TensorKind kind = links.graph.tensor(t).kind;
  if (links.is_leaf(t) && (kind == TensorKind::Kv || kind == TensorKind::Input))
    return Category::Infrastructure;
  if (links.layer(t) != kNoLayer || links.categories[t.v] == Category::Layer) return side;
  return links.categories[t.v];
}

Members own_members(const Links& links, LayerId layer) {
  Members members(links.graph.tensors.size());
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    const TensorKind kind = links.graph.tensors[i].kind;
    const bool infrastructure =
        links.is_leaf(TensorId{i}) && (kind == TensorKind::Kv || kind == TensorKind::Input);
    if (links.layer(TensorId{i}) == layer && !infrastructure) members[i] = Category::Layer;
  }
  return members;
}

// Adds what the members read, and what lies behind that where it hides something.
void add_inputs(const Links& links, Members& members) {
  std::vector<TensorId> look_behind;
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    if (members[i] == Category::Layer) look_behind.push_back(TensorId{i});
  }
  while (!look_behind.empty()) {
    const TensorId t = look_behind.back();
    look_behind.pop_back();
    for (const TensorId source : links.sources[t.v]) {
      if (members[source.v]) continue;
      const Category category = category_outside(links, source, Category::CrossLayerInput);
      members[source.v] = category;
      if (links.does_no_work(source) || category == Category::Infrastructure)
        look_behind.push_back(source);
    }
  }
}

// Adds what reads the results of the layer, likewise.
void add_outputs(const Links& links, Members& members) {
  std::vector<TensorId> look_behind;
  std::vector<bool> seen(members.size());
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    if (members[i] == Category::Layer && !links.is_leaf(TensorId{i}))
      look_behind.push_back(TensorId{i});
  }
  while (!look_behind.empty()) {
    const TensorId t = look_behind.back();
    look_behind.pop_back();
    for (const TensorId reader : links.readers[t.v]) {
      if (members[reader.v] == Category::Layer || seen[reader.v]) continue;
      seen[reader.v] = true;
      if (!members[reader.v]) {
        const Category category = category_outside(links, reader, Category::CrossLayerOutput);
        members[reader.v] =
            category == Category::Infrastructure ? Category::CrossLayerOutput : category;
      }
      if (links.does_no_work(reader)) look_behind.push_back(reader);
    }
  }
}

std::vector<LayerNode> in_execution_order(const Links& links, const Members& members) {
  std::vector<LayerNode> nodes;
  std::vector<bool> placed(members.size());
  const auto place = [&](TensorId t) {
    if (!members[t.v] || placed[t.v]) return;
    placed[t.v] = true;
    LayerNode node{.tensor = t, .layer = links.layer(t), .category = *members[t.v]};
    if (!links.is_leaf(t)) {
      node.node = links.makers[t.v];
      node.op = links.ops[node.node.v];
    }
    nodes.push_back(node);
  };
  for (const Node& node : links.graph.nodes) {
    if (!members[node.output.v]) continue;
    for (const TensorId source : links.sources[node.output.v]) {
      if (links.is_leaf(source)) place(source);
    }
    place(node.output);
  }
  // Weights of the layer that only other layers read.
  for (std::uint32_t i = 0; i < members.size(); ++i) place(TensorId{i});
  return nodes;
}

std::vector<LayerEdge> edges_among(const Links& links, const Members& members, LayerId layer) {
  const auto elsewhere = [&](TensorId t) {
    return links.layer(t) != kNoLayer && links.layer(t) != layer;
  };
  std::vector<LayerEdge> edges;
  for (const auto& [from, to] : links.edges) {
    if (members[from.v] && members[to.v])
      edges.push_back({.from = from, .to = to, .cross_layer = elsewhere(from) || elsewhere(to)});
  }
  return edges;
}

}  // namespace

LayerSubgraph layer_subgraph(const GraphTemplate& graph, LayerId layer) {
  const Links links(graph);
  Members members = own_members(links, layer);
  add_inputs(links, members);
  add_outputs(links, members);
  // From here the set is fixed.
  return {.nodes = in_execution_order(links, members), .edges = edges_among(links, members, layer)};
}

std::expected<StepLayer, TraceError> layer_of_step(const SessionReader& reader, StepId id,
                                                   LayerId layer) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  const auto step = reader.step(id);
  if (!step) return std::unexpected(step.error());
  if (step->graph.v == 0) {
    return std::unexpected(TraceError{
        TraceError::Kind::NotFound,
        std::format("The graph of step {} was not recorded. Another step may have one: those "
                    "whose \"template\" is not 0.",
                    id.v)});
  }
  auto graph = reader.graph(step->graph);
  if (!graph) return std::unexpected(graph.error());
  StepLayer out{.step = id,
                .id = step->graph,
                .graph = *std::move(graph),
                .layer = layer,
                .layers = info->n_layers,
                .subgraph = {}};
  out.subgraph = layer_subgraph(*out.graph, layer);
  // A layer of the model that this graph leaves out (an encoder's) is there, and empty.
  if (out.subgraph.nodes.empty() && std::cmp_greater_equal(layer.v, info->n_layers)) {
    return std::unexpected(
        TraceError{TraceError::Kind::NotFound,
                   std::format("The model has no layer {}: it has {} of them, numbered from 0.",
                               layer.v, info->n_layers)});
  }
  return out;
}

}  // namespace tt
