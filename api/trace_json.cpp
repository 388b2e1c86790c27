#include "api/trace_json.h"

#include <cmath>
#include <format>

namespace tt {

namespace {

Json layer_json(LayerId layer) { return layer == kNoLayer ? Json() : Json(layer.v); }
Json number_or_null(std::int32_t v) { return v < 0 ? Json() : Json(v); }

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
          {"sources", std::move(sources)}};
}

Json to_json(const GraphTemplate& graph, const AccessRow& row) {
  const StepAccess& access = row.access;
  const Tensor& tensor = graph.tensor(access.tensor);
  const bool scored = access.expert >= 0 && !std::isnan(access.score);
  return {{"op", access.op.v},
          {"tensor", tensor.name},
          {"kind", to_text(tensor.kind)},
          {"write", access.write},
          {"bytes", access.touched.v},
          {"source", to_text(tensor.source)},
          {"file", range_json(access.range)},
          {"address", row.address == 0 ? Json() : Json(std::format("0x{:x}", row.address))},
          {"layer", layer_json(tensor.layer)},
          {"component", to_text(tensor.component)},
          {"role", to_text(tensor.role)},
          {"category", to_text(row.category)},
          {"expert", number_or_null(access.expert)},
          {"rank", number_or_null(access.rank)},
          {"score", scored ? Json(access.score) : Json()}};
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
Json to_json(const AccessTable& accesses) {
  return page_json("accesses", accesses.page,
                   [&](const AccessRow& row) { return to_json(*accesses.graph, row); });
}

}  // namespace tt
