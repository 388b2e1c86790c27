#include "api/exchange/step_json.h"

#include "api/trace_json.h"

namespace tt::exchange {

void StepTotals::add_to(Json& json) const {
  json["accesses"] = accesses;
  json["bytes_read"] = read;
  json["bytes_written"] = written;
}

Json step_begin_json(const Step& step, const RowTemplate* graph) {
  return {{"step", step.id.v},
          {"timestamp_ns", step.begin.v},
          {"phase", to_text(step.phase)},
          {"timing", to_text(step.timing)},
          {"first_op_ns", step.first_op.v},
          {"token_id", step.first_token},
          {"token_count", step.n_tokens},
          {"threads", step.threads},
          {"template", step.graph.v},
          {"ops", graph == nullptr ? 0 : graph->derived->graph->ops.size()},
          {"ops_run", step.op_ends.size()}};
}

Json step_end_json(const Step& step, const StepTotals& totals) {
  Json json = {{"dropped", step.dropped}, {"aborted", step.aborted}};
  totals.add_to(json);
  return json;
}

std::expected<Json, TraceError> new_tokens(const SessionReader& reader, const Step& step,
                                           std::uint32_t& shown) {
  const std::uint64_t end = std::uint64_t{step.first_token} + step.n_tokens;
  Json list = Json::array();
  if (end <= shown) return list;
  const auto tokens = reader.tokens(shown, static_cast<std::uint32_t>(end - shown));
  if (!tokens) return std::unexpected(tokens.error());
  for (const Token& token : *tokens) list.push_back(tt::to_json(token));
  shown += static_cast<std::uint32_t>(tokens->size());
  return list;
}

}  // namespace tt::exchange
