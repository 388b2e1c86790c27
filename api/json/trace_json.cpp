#include "api/json/trace_json.h"

#include <cmath>
#include <format>

#include "api/json/access_cursor.h"

namespace tt {

namespace {

Json number_or_null(std::int32_t v) { return v < 0 ? Json() : Json(v); }
Json number_or_null(float v) { return std::isfinite(v) ? Json(v) : Json(); }

// kNone is null.
template <class Id>
Json id_json(Id id) {
  return id.v == kNone ? Json() : Json(id.v);
}

Json source_json(const Tensor& tensor) {
  return {{"tensor", tensor.name},
          {"type", tensor.type},
          {"shape", tensor.ne},
          {"kind", to_text(tensor.kind)},
          {"source", to_text(tensor.source)}};
}

Json range_json(const FileRange& range) {
  if (range.empty()) return nullptr;
  return {{"index", range.file}, {"offset", range.offset}, {"length", range.length}};
}

// Common first fields of both graph forms.
Json head_json(const GraphPart& part) {
  return {{"step", part.step ? Json(part.step->v) : Json()},
          {"template", part.id.v},
          {"layers", part.layers}};
}

}  // namespace

Json to_json(const Token& token) {
  return {{"index", token.index},         {"id", token.id},         {"position", token.position},
          {"generated", token.generated}, {"reused", token.reused}, {"text", token.text}};
}

Json to_json(const StepSummary& step) {
  Json ns = Json::array(), bytes = Json::array();
  for (const Ns n : step.layer_ns) ns.push_back(n.v);
  for (const Bytes b : step.layer_bytes) bytes.push_back(b.v);
  return {{"step", step.step.v},
          {"phase", to_text(step.phase)},
          {"timing", to_text(step.timing)},
          {"template", step.graph.v},
          {"begin_ns", step.begin.v},
          {"end_ns", step.end.v},
          {"first_token", step.first_token},
          {"n_tokens", step.n_tokens},
          {"ops", step.ops},
          {"accesses", step.accesses},
          {"bytes_read", step.read.v},
          {"bytes_written", step.written.v},
          {"dropped", step.dropped},
          {"aborted", step.aborted},
          {"layers", {{"ns", std::move(ns)}, {"bytes", std::move(bytes)}}}};
}

Json to_json(const ValueStats& stats) {
  return {{"min", number_or_null(stats.min)},
          {"max", number_or_null(stats.max)},
          {"mean", number_or_null(stats.mean)},
          {"std", number_or_null(stats.std)},
          {"nan", stats.nan},
          {"inf", stats.inf}};
}

Json to_json(const GraphTemplate& graph, const OpRow& row) {
  const Op& op = graph.op(row.op);
  const Tensor& output = graph.tensor(row.output);
  Json sources = Json::array();
  for (const TensorId source : row.sources) sources.push_back(source_json(graph.tensor(source)));
  return {{"op", row.op.v},
          {"name", row.name},
          {"tensor", output.name},
          {"type", output.type},
          {"shape", output.ne},
          {"layer", layer_json(op.layer)},
          {"component", to_text(row.component)},
          {"role", to_text(row.role)},
          {"device", op.device},
          {"begin_ns", row.begin.v},
          {"end_ns", row.end.v},
          {"nodes", op.nodes},
          {"bytes_read", row.read.v},
          {"bytes_written", row.written.v},
          {"sources", std::move(sources)},
          {"stats", row.stats ? to_json(*row.stats) : Json()}};
}

Json to_json(const AccessRow& row) {
  const StepAccess& access = row.access;
  const bool scored = access.expert >= 0 && !std::isnan(access.score);
  return {{"op", access.op.v},
          {"tensor", row.name},
          {"kind", to_text(row.kind)},
          {"write", access.write},
          {"bytes", access.touched.v},
          {"source", to_text(row.source)},
          {"file", range_json(access.range)},
          {"address", row.address == 0 ? Json() : Json(std::format("0x{:x}", row.address))},
          {"layer", layer_json(row.layer)},
          {"component", to_text(row.component)},
          {"role", to_text(row.role)},
          {"category", to_text(row.category)},
          {"expert", number_or_null(access.expert)},
          {"rank", number_or_null(access.rank)},
          {"score", scored ? Json(access.score) : Json()}};
}

Json to_json(const TemplateRow& row) {
  return {{"template", row.id.v},   {"fingerprint", std::format("{:016x}", row.fingerprint)},
          {"nodes", row.nodes},     {"ops", row.ops},
          {"tensors", row.tensors}, {"steps", row.steps},
          {"layers", row.layers}};
}

Json to_json(const GraphTemplate& graph, const NodeRow& row) {
  const Node& node = graph.node(row.node);
  Json sources = Json::array();
  for (const TensorId source : node.src) sources.push_back(id_json(source));
  return {{"node", row.node.v},
          {"op", node.op},
          {"tensor", node.output.v},
          {"name", graph.tensor(node.output).name},
          {"sources", std::move(sources)},
          {"computed", node.computed},
          {"executed_op", id_json(row.op)}};
}

Json to_json(const GraphTemplate& graph, const TensorRow& row) {
  const Tensor& tensor = graph.tensor(row.tensor);
  return {{"tensor", row.tensor.v},
          {"name", tensor.name},
          {"label", to_text(tensor.input)},
          {"type", tensor.type},
          {"shape", tensor.ne},
          {"strides", tensor.nb},
          {"size", size_of(tensor).v},
          {"kind", to_text(tensor.kind)},
          {"source", to_text(tensor.source)},
          {"category", to_text(row.category)},
          {"view_of", id_json(tensor.view_of)},
          {"buffer", tensor.buffer},
          {"layer", layer_json(tensor.layer)},
          {"component", to_text(tensor.component)},
          {"role", to_text(tensor.role)},
          {"file", range_json(tensor.file)}};
}

Json to_json(const GraphPart& part) {
  const GraphTemplate& graph = *part.graph;
  Json nodes = Json::array(), edges = Json::array();
  for (const LayerNode& node : part.subgraph.nodes) {
    const Tensor& tensor = graph.tensor(node.tensor);
    nodes.push_back({{"tensor", node.tensor.v},
                     {"node", id_json(node.node)},
                     {"executed_op", id_json(node.op)},
                     {"op", node.node == kNoNode ? Json() : Json(graph.node(node.node).op)},
                     {"name", tensor.name},
                     {"label", to_text(tensor.input)},
                     {"type", tensor.type},
                     {"shape", tensor.ne},
                     {"size", size_of(tensor).v},
                     {"kind", to_text(tensor.kind)},
                     {"source", to_text(tensor.source)},
                     {"layer", layer_json(node.layer)},
                     {"component", to_text(tensor.component)},
                     {"role", to_text(tensor.role)},
                     {"category", to_text(node.category)},
                     {"file", range_json(tensor.file)}});
  }
  for (const LayerEdge& edge : part.subgraph.edges) {
    edges.push_back({{"from", edge.from.v}, {"to", edge.to.v}, {"cross_layer", edge.cross_layer}});
  }
  Json out = head_json(part);
  out["nodes"] = std::move(nodes);
  out["edges"] = std::move(edges);
  return out;
}

Json collapsed_json(const GraphPart& part) {
  const CollapsedGraph graph = collapsed(*part.graph, part.subgraph);
  Json groups = Json::array(), edges = Json::array();
  for (const NodeGroup& group : graph.groups) {
    groups.push_back({{"layer", layer_json(group.layer)},
                      {"component", to_text(group.component)},
                      {"category", to_text(group.category)},
                      {"tensors", group.tensors},
                      {"ops", group.ops},
                      {"weights", group.weights},
                      {"weight_bytes", group.weight_bytes.v}});
  }
  for (const GroupEdge& edge : graph.edges) {
    edges.push_back({{"from", edge.from},
                     {"to", edge.to},
                     {"edges", edge.edges},
                     {"cross_layer", edge.cross_layer}});
  }
  Json out = head_json(part);
  out["groups"] = std::move(groups);
  out["edges"] = std::move(edges);
  return out;
}

Json to_json(const Page<Token>& tokens) {
  return page_json("tokens", tokens, [](const Token& row) { return to_json(row); });
}
Json to_json(const Page<StepSummary>& steps) {
  return page_json("steps", steps, [](const StepSummary& row) { return to_json(row); });
}
Json to_json(const OpTable& ops) {
  return page_json("ops", ops.page, [&](const OpRow& row) { return to_json(*ops.graph, row); });
}
Json to_json(const std::vector<TemplateRow>& templates) {
  Json rows = Json::array();
  for (const TemplateRow& row : templates) rows.push_back(to_json(row));
  return {{"templates", std::move(rows)}};
}
Json to_json(const NodeTable& nodes) {
  return page_json("nodes", nodes.page,
                   [&](const NodeRow& row) { return to_json(*nodes.graph, row); });
}
Json to_json(const TensorTable& tensors) {
  return page_json("tensors", tensors.page,
                   [&](const TensorRow& row) { return to_json(*tensors.graph, row); });
}
Json to_json(const Page<AccessRow>& accesses) {
  return page_json("accesses", accesses, [](const AccessRow& row) { return to_json(row); });
}

Json accesses_json(const AccessPage& page, const std::string& session, const AccessQuery& query) {
  Json rows = Json::array();
  for (const AccessRow& row : page.rows) {
    Json json{{"step", row.place.step.v}};
    json.update(to_json(row));
    rows.push_back(std::move(json));
  }
  return {{"next", page.next ? Json(encode_cursor(*page.next, session, query)) : Json()},
          {"accesses", std::move(rows)}};
}

}  // namespace tt
