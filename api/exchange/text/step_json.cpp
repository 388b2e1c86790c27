#include "api/exchange/text/step_json.h"

#include <format>

#include "api/json/trace_json.h"
#include "tracer/text/utf8.h"

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
  for (const StepCondition& of : kStepConditions)
    if (const auto& known = step.conditions.*of.value) json[of.name] = *known;
  return json;
}

namespace {

// A token may be an incomplete UTF-8 character: then its bytes are written as hex.
Json token_json(const Token& token) {
  Json json = tt::to_json(token);
  if (is_utf8(token.text)) return json;
  std::string hex;
  for (const char c : token.text) hex += std::format("{:02x}", static_cast<unsigned char>(c));
  json["text_hex"] = hex;
  return json;
}

std::expected<Json, TraceError> read_tokens_until(const SessionReader& reader, std::uint64_t end,
                                                  std::uint32_t& next_token) {
  Json list = Json::array();
  if (end <= next_token) return list;
  const auto tokens = reader.tokens(next_token, static_cast<std::uint32_t>(end - next_token));
  if (!tokens) return std::unexpected(tokens.error());
  for (const Token& token : *tokens) list.push_back(token_json(token));
  next_token += static_cast<std::uint32_t>(tokens->size());
  return list;
}

}  // namespace

std::expected<Json, TraceError> new_tokens(const SessionReader& reader, const Step& step,
                                           std::uint32_t& next_token) {
  return read_tokens_until(reader, std::uint64_t{step.first_token} + step.n_tokens, next_token);
}

std::expected<Json, TraceError> unevaluated_tokens(const SessionRows& rows,
                                                   std::uint32_t next_token) {
  const auto steps = rows.reader().step_count();
  if (!steps) return std::unexpected(steps.error());
  return read_tokens_until(rows.reader(), *steps == rows.steps() ? UINT32_MAX : 0, next_token);
}

}  // namespace tt::exchange
