#include "api/json/trace_json.h"

#include <format>

#include "analysis/columns/op_columns.h"
#include "analysis/columns/step_columns.h"
#include "analysis/columns/tensor_columns.h"
#include "api/json/access_cursor.h"
#include "api/json/column_json.h"
#include "api/json/step_row.h"

namespace tt {

namespace {

// kNone is null.
template <class Id>
Json id_json(Id id) {
  return id.v == kNone ? Json() : Json(id.v);
}

// The rows of analysis/columns; their heads list the accessors.

struct OpColumnsRow {
  const OpTable& table;
  const OpRow& row;
  const StepFacts& step() const { return table.step; }
  OpId op_id() const { return row.op; }
  const Op& op() const { return table.graph->op(row.op); }
  TensorId tensor_id() const { return row.output; }
  const Tensor& tensor() const { return table.graph->tensor(row.output); }
  std::string_view operation_type() const { return row.name; }
  std::string_view device() const { return op().device; }
  std::string_view tensor_name() const { return tensor().name; }
  std::string_view tensor_type() const { return tensor().type; }
  OpRole role() const { return {row.component, row.role}; }
  std::optional<Kernel> kernel() const { return row.kernel; }
  Ns begin() const { return row.begin; }
  std::optional<Ns> duration() const { return row.duration; }
  Bytes read() const { return row.read; }
  Bytes written() const { return row.written; }
  const ValueStats* stats() const { return row.stats ? &*row.stats : nullptr; }
};

struct OutputColumnsRow {
  const ValueStats& of;
  const ValueStats* stats() const { return &of; }
};

struct TensorColumnsRow {
  const GraphTemplate& graph;
  TemplateId id;
  TensorId place;
  Category in_graph;
  TemplateId template_id() const { return id; }
  TensorId tensor_id() const { return place; }
  const Tensor& tensor() const { return graph.tensor(place); }
  Category category() const { return in_graph; }
  std::string_view tensor_name() const { return tensor().name; }
  std::string_view tensor_type() const { return tensor().type; }
  std::string_view buffer() const { return tensor().buffer; }
};

struct AccessColumnsRow {
  const AccessRow& row;
  const StepFacts& step() const { return *row.step; }
  const StepAccess& access() const { return row.access; }
  std::uint32_t place() const { return row.place.access; }
  std::uint32_t part() const { return row.place.part; }
  const Access& rule() const { return row.derived->accesses[place()]; }
  OpId op_id() const { return row.access.op; }
  TensorId tensor_id() const { return row.access.tensor; }
  bool is_write() const { return row.access.write; }
  const Op& op() const { return row.graph().op(op_id()); }
  const Tensor& tensor() const { return row.tensor(); }
  Category category() const { return row.derived->categories[tensor_id().v]; }
  std::string operation_type() const { return op_name(row.graph(), op()); }
  std::string_view device() const { return op().device; }
  std::string_view tensor_name() const { return tensor().name; }
  std::string_view tensor_type() const { return tensor().type; }
  Ns begin() const { return row.begin; }
  std::optional<Ns> duration() const { return row.duration; }
  std::optional<Ns> self() const { return {}; }  // not a column of REST
  std::uint64_t address() const { return row.address; }
  std::optional<std::int32_t> head() const { return std::nullopt; }
  std::uint32_t heads() const { return row.heads; }
  std::string_view session_id() const { return {}; }  // not a column of REST
};

// Common first fields of both graph forms.
Json head_json(const GraphPart& part) {
  return {{"step", part.step ? Json(part.step->v) : Json()},
          {"template", part.id.v},
          {"layers", part.layers}};
}

}  // namespace

Json to_json(const Token& token) {
  return {{"index", token.index},
          {"id", token.id},
          {"position", token.position},
          {"generated", token.generated},
          {"reused", token.reused},
          {"sequence", token.sequence ? Json(*token.sequence) : Json()},
          {"draft", token.draft == Draft::None ? Json() : Json(to_text(token.draft))},
          {"text", token.text}};
}

Json to_json(const StepSummary& step) {
  Json ns = Json::array(), bytes = Json::array();
  for (const Ns n : step.layer_ns) ns.push_back(n.v);
  for (const Bytes b : step.layer_bytes) bytes.push_back(b.v);
  Json json = row_json<columns::step_columns>(StepColumnsRow{step});
  json["layers"] = {{"ns", std::move(ns)}, {"bytes", std::move(bytes)}};
  return json;
}

Json output_json(const ValueStats& stats) {
  return row_json<columns::output_columns>(OutputColumnsRow{stats});
}

Json to_json(const OpTable& table, const OpRow& row) {
  Json sources = Json::array();
  for (const TensorId source : row.sources) {
    sources.push_back(row_json<columns::source_columns>(TensorColumnsRow{
        .graph = *table.graph, .id = table.step.graph, .place = source, .in_graph = {}}));
  }
  Json json = row_json<columns::op_columns>(OpColumnsRow{table, row});
  json["sources"] = std::move(sources);
  return json;
}

Json to_json(const AccessRow& row) {
  return row_json<columns::access_columns>(AccessColumnsRow{row});
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

Json to_json(const TensorTable& table, const TensorRow& row) {
  return row_json<columns::tensor_columns>(TensorColumnsRow{
      .graph = *table.graph, .id = table.id, .place = row.tensor, .in_graph = row.category});
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
                     {"model_file", optional_json(columns::file_of(tensor.file))},
                     {"file_offset", optional_json(columns::offset_of(tensor.file))},
                     {"file_bytes", optional_json(columns::length_of(tensor.file))}});
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

Json to_json(const Page<AnsweredToken>& tokens) {
  return page_json("tokens", tokens, [](const AnsweredToken& row) {
    Json json = to_json(row.token);
    if (in_answer(row.token) && row.answer != row.token.text) json["answer"] = row.answer;
    return json;
  });
}
Json to_json(const Page<StepSummary>& steps) {
  return page_json("steps", steps, [](const StepSummary& row) { return to_json(row); });
}
Json to_json(const OpTable& ops) {
  return page_json("ops", ops.page, [&](const OpRow& row) { return to_json(ops, row); });
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
                   [&](const TensorRow& row) { return to_json(tensors, row); });
}
Json to_json(const Page<AccessRow>& accesses) {
  return page_json("accesses", accesses, [](const AccessRow& row) { return to_json(row); });
}

Json accesses_json(const AccessPage& page, const std::string& session, const AccessQuery& query) {
  Json rows = Json::array();
  for (const AccessRow& row : page.rows) rows.push_back(to_json(row));
  return {{"next", page.next ? Json(encode_cursor(*page.next, session, query)) : Json()},
          {"accesses", std::move(rows)}};
}

}  // namespace tt
