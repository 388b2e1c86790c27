#include "analysis/graph/graph_part.h"

#include <algorithm>
#include <format>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/common/rebuilt.h"
#include "analysis/common/session_layers.h"

namespace tt {

namespace {

std::expected<GraphPart, TraceError> part_of(const SessionReader& reader,
                                             std::optional<StepId> step, TemplateId id,
                                             const LayerSet& layers) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  if (auto known = needs_recorded_graphs(*info, "the graph"); !known)
    return std::unexpected(known.error());
  auto graph = reader.graph(id);
  if (!graph) return std::unexpected(graph.error());
  GraphPart part{
      .step = step, .id = id, .graph = *std::move(graph), .layers = info->n_layers, .subgraph = {}};
  const auto end = std::max(std::int64_t{part.layers}, layer_count(*part.graph));
  if (auto there = validate_layers(layers, end); !there) return std::unexpected(there.error());
  part.subgraph = layer_subgraph(*part.graph, layers);
  return part;
}

Component component_of_node(const GraphTemplate& graph, const LayerNode& at) {
  const Component own = graph.tensor(at.tensor).component;
  if (own != Component::Other || at.node == kNoNode) return own;
  for (const TensorId source : graph.node(at.node).src) {
    if (source != kNoTensor && graph.tensor(source).kind == TensorKind::Weight)
      return graph.tensor(source).component;
  }
  return own;
}

}  // namespace

std::expected<StepId, TraceError> last_with_graph(const SessionReader& reader, StepId first,
                                                  StepId end, const ContinueCheck& keep_going) {
  for (std::uint32_t i = end.v; i-- > first.v;) {
    if (!keep_going()) return std::unexpected(cancelled_error());
    const auto step = reader.step(StepId{i});
    if (!step) return std::unexpected(step.error());
    if (step->graph.v != 0) return StepId{i};
  }
  return std::unexpected(
      TraceError{TraceError::Kind::NotFound,
                 "The session has no recorded graph. Record it with --level detailed."});
}

std::expected<GraphPart, TraceError> part_of_step(const SessionReader& reader, StepId id,
                                                  const LayerSet& layers) {
  const auto step = reader.step(id);
  if (!step) return std::unexpected(step.error());
  if (step->graph.v == 0) {
    return std::unexpected(TraceError{
        TraceError::Kind::NotFound,
        std::format("The graph of step {} was not recorded. Use a step whose \"template\" is "
                    "not 0.",
                    id.v)});
  }
  return part_of(reader, id, step->graph, layers);
}

std::expected<GraphPart, TraceError> part_of_template(const SessionReader& reader, TemplateId id,
                                                      const LayerSet& layers) {
  return part_of(reader, std::nullopt, id, layers);
}

CollapsedGraph collapsed(const GraphTemplate& graph, const LayerSubgraph& subgraph) {
  CollapsedGraph out;
  std::map<std::tuple<LayerId, Component, Category>, std::uint32_t> groups;
  std::vector<std::uint32_t> group_of(graph.tensors.size(), kNone);
  for (const LayerNode& node : subgraph.nodes) {
    const Component component = component_of_node(graph, node);
    const auto [at, fresh] = groups.try_emplace({node.layer, component, node.category},
                                                static_cast<std::uint32_t>(out.groups.size()));
    if (fresh) {
      out.groups.push_back(
          {.layer = node.layer, .component = component, .category = node.category});
    }
    group_of[node.tensor.v] = at->second;
    NodeGroup& group = out.groups[at->second];
    ++group.tensors;
    if (node.op != kNoOp && graph.op(node.op).last() == node.node) ++group.ops;
    const Tensor& tensor = graph.tensor(node.tensor);
    if (node.node == kNoNode && tensor.kind == TensorKind::Weight) {
      ++group.weights;
      group.weight_bytes.v += tensor.file.length;
    }
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, GroupEdge> edges;
  for (const LayerEdge& edge : subgraph.edges) {
    const std::uint32_t from = group_of[edge.from.v], to = group_of[edge.to.v];
    if (from == to) continue;
    GroupEdge& sum = edges.try_emplace({from, to}, GroupEdge{.from = from, .to = to}).first->second;
    ++sum.edges;
    sum.cross_layer |= edge.cross_layer;
  }
  for (const auto& [ends, edge] : edges) out.edges.push_back(edge);
  return out;
}

}  // namespace tt
