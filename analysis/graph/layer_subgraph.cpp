#include "analysis/graph/layer_subgraph.h"

#include <optional>

#include "analysis/graph/dependencies.h"
#include "analysis/graph/node_layers.h"

namespace tt {

namespace {

// Per-tensor lookup tables of a graph.
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
  bool is_input_or_cache(TensorId t) const {
    const TensorKind kind = graph.tensor(t).kind;
    return is_leaf(t) && (kind == TensorKind::Kv || kind == TensorKind::Input);
  }

  const GraphTemplate& graph;
  std::vector<Dependency> edges;
  std::vector<OpId> ops;        // per node
  std::vector<LayerId> layers;  // per node
  std::vector<Category> categories;
  std::vector<NodeId> makers;  // per tensor
  std::vector<std::vector<TensorId>> sources, readers;
};

// The tensors of the subgraph with their categories; `own`: whether the tensor belongs to
// the selection.
struct Members {
  explicit Members(std::size_t tensors) : categories(tensors), own(tensors) {}
  std::vector<std::optional<Category>> categories;
  std::vector<bool> own;
};

// The category of a neighbour; `side` if no other category applies.
Category category_outside(const Links& links, TensorId t, Category side) {
  if (links.is_input_or_cache(t)) return Category::Infrastructure;
  if (links.layer(t) != kNoLayer || links.categories[t.v] == Category::Layer) return side;
  return links.categories[t.v];
}

Members own_members(const Links& links, const LayerSet& layers) {
  Members members(links.graph.tensors.size());
  for (std::uint32_t i = 0; i < links.graph.tensors.size(); ++i) {
    const bool external = links.is_input_or_cache(TensorId{i});
    const LayerId layer = external ? kNoLayer : links.layer(TensorId{i});
    if (!layers.has(layer)) continue;
    members.own[i] = true;
    members.categories[i] = external            ? Category::Infrastructure
                            : layer != kNoLayer ? Category::Layer
                                                : links.categories[i];
  }
  return members;
}

// Adds what the members read, following tensors that do no work.
void add_inputs(const Links& links, Members& members) {
  std::vector<TensorId> look_behind;
  for (std::uint32_t i = 0; i < members.own.size(); ++i) {
    if (members.own[i]) look_behind.push_back(TensorId{i});
  }
  while (!look_behind.empty()) {
    const TensorId t = look_behind.back();
    look_behind.pop_back();
    for (const TensorId source : links.sources[t.v]) {
      if (members.categories[source.v]) continue;
      const Category category = category_outside(links, source, Category::CrossLayerInput);
      members.categories[source.v] = category;
      if (links.does_no_work(source) || category == Category::Infrastructure)
        look_behind.push_back(source);
    }
  }
}

// Adds what reads the results of the selected layers, following tensors that do no work.
void add_outputs(const Links& links, Members& members) {
  std::vector<TensorId> look_behind;
  std::vector<bool> seen(members.own.size());
  for (std::uint32_t i = 0; i < members.own.size(); ++i) {
    if (members.own[i] && !links.is_leaf(TensorId{i})) look_behind.push_back(TensorId{i});
  }
  while (!look_behind.empty()) {
    const TensorId t = look_behind.back();
    look_behind.pop_back();
    for (const TensorId reader : links.readers[t.v]) {
      if (members.own[reader.v] || seen[reader.v]) continue;
      seen[reader.v] = true;
      if (!members.categories[reader.v]) {
        const Category category = category_outside(links, reader, Category::CrossLayerOutput);
        members.categories[reader.v] =
            category == Category::Infrastructure ? Category::CrossLayerOutput : category;
      }
      if (links.does_no_work(reader)) look_behind.push_back(reader);
    }
  }
}

std::vector<LayerNode> in_execution_order(const Links& links, const Members& members) {
  std::vector<LayerNode> nodes;
  std::vector<bool> placed(members.own.size());
  const auto place = [&](TensorId t) {
    if (!members.categories[t.v] || placed[t.v]) return;
    placed[t.v] = true;
    LayerNode node{.tensor = t, .layer = links.layer(t), .category = *members.categories[t.v]};
    if (!links.is_leaf(t)) {
      node.node = links.makers[t.v];
      node.op = links.ops[node.node.v];
    }
    nodes.push_back(node);
  };
  for (const Node& node : links.graph.nodes) {
    if (!members.categories[node.output.v]) continue;
    for (const TensorId source : links.sources[node.output.v]) {
      if (links.is_leaf(source)) place(source);
    }
    place(node.output);
  }
  // Weights that no node of the subgraph reads.
  for (std::uint32_t i = 0; i < members.own.size(); ++i) place(TensorId{i});
  return nodes;
}

std::vector<LayerEdge> edges_among(const Links& links, const Members& members,
                                   const LayerSet& layers) {
  const auto crosses = [&](LayerId a, LayerId b) {
    if (a == b) return a != kNoLayer && !layers.has(a);
    return (a != kNoLayer && b != kNoLayer) || !layers.has(a == kNoLayer ? b : a);
  };
  std::vector<LayerEdge> edges;
  for (const auto& [from, to] : links.edges) {
    if (members.categories[from.v] && members.categories[to.v]) {
      edges.push_back(
          {.from = from, .to = to, .cross_layer = crosses(links.layer(from), links.layer(to))});
    }
  }
  return edges;
}

}  // namespace

LayerSubgraph layer_subgraph(const GraphTemplate& graph, const LayerSet& layers) {
  const Links links(graph);
  Members members = own_members(links, layers);
  add_inputs(links, members);
  add_outputs(links, members);
  // The member set is complete here.
  return {.nodes = in_execution_order(links, members),
          .edges = edges_among(links, members, layers)};
}

}  // namespace tt
