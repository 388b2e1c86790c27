#include "api/json/analysis/comparison_json.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "api/json/result_json.h"
#include "api/json/trace_json.h"
#include "api/text/cause_text.h"
#include "api/text/change_text.h"

namespace tt {

namespace {

Json session_json(const SessionInfo& info) {
  return {{"id", info.id},
          {"title", info.title},
          {"model", info.model_files.empty() ? Json() : Json(info.model_files.front().path)}};
}

Json token_side(const std::optional<Token>& token, const std::optional<Ns>& ns) {
  if (!token) return {};
  Json json = to_json(*token);
  json["ns"] = ns ? Json(ns->v) : Json();
  return json;
}

Json tokens_json(const Comparison& comparison) {
  const TokenAlignment& tokens = comparison.tokens;
  Json rows = Json::array();
  for (const ComparedToken& row : tokens.rows.rows) {
    rows.push_back({{"index", row.index},
                    {"left", token_side(row.left, row.left_ns)},
                    {"right", token_side(row.right, row.right_ns)}});
  }
  return {{"left", tokens.left},
          {"right", tokens.right},
          {"common", tokens.common},
          {"text", tokens_text(comparison)},
          {"rows", std::move(rows)}};
}

Json chosen_json(const Comparison& comparison) {
  if (!comparison.chosen) return {};
  const auto side = [](const ChosenChange::Side& of) {
    return Json{{"text", of.text}, {"probability", of.probability}};
  };
  const auto at = [&](const std::optional<ChosenChange::At>& of) {
    return of ? Json{{"token", of->token}, {"left", side(of->left)}, {"right", side(of->right)}}
              : Json();
  };
  const ChosenChange& chosen = *comparison.chosen;
  return {{"text", chosen_text(comparison)},
          {"tokens", chosen.tokens},
          {"first", at(chosen.first)},
          {"largest", at(chosen.largest)},
          {"other", at(chosen.other)}};
}

Json template_json(const ComparedTemplate& row) {
  const auto side = [](TemplateId id, std::uint32_t steps, std::uint32_t ops) {
    return id.v == 0 ? Json() : Json{{"template", id.v}, {"steps", steps}, {"ops", ops}};
  };
  return {{"match", to_text(row.match)},
          {"left", side(row.left, row.left_steps, row.left_ops)},
          {"right", side(row.right, row.right_steps, row.right_ops)}};
}

Json token_json(const std::optional<TokenChange>& change) {
  if (!change) return {};
  const auto side = [](const TokenChange::Side& of) {
    return Json{{"steps", of.steps}, {"ns", of.median.v}, {"bytes_read", of.bytes_read}};
  };
  return {{"phase", to_text(change->phase)},
          {"left", side(change->left)},
          {"right", side(change->right)},
          {"ratio", change->time.ratio},
          {"low", optional_json(change->time.low)},
          {"high", optional_json(change->time.high)},
          {"verdict", to_text(change->time.verdict)}};
}

Json times_json(const std::optional<CountedTimes>& of) {
  if (!of || !of->spread) return {};
  Json json = to_json(*of->spread);
  json["steps"] = of->steps.used;
  return json;
}
Json times_text(const std::optional<CountedTimes>& of) {
  return of ? Json(to_text(of->steps)) : Json();
}

Json facts_json(const std::vector<ComparedFact>& facts) {
  Json rows = Json::array();
  for (const ComparedFact& fact : facts) {
    rows.push_back({{"name", fact.name},
                    {"label", fact_label(fact.name)},
                    {"left", optional_json(fact.left)},
                    {"right", optional_json(fact.right)}});
  }
  return rows;
}

Json to_json(const std::vector<DifferenceCause>& causes) {
  Json rows = Json::array();
  for (const DifferenceCause& cause : causes) {
    rows.push_back({{"kind", to_text(cause.kind)},
                    {"title", cause_title(cause.kind)},
                    {"reason", cause_reason(cause)},
                    {"text", cause_line(cause)},
                    {"facts", facts_json(cause.facts)}});
  }
  return rows;
}

Json output_json(const ValuesDifference& of) {
  return {{"step", of.step.v},
          {"op", of.op.v},
          {"operation_type", of.operation},
          {"tensor_name", of.tensor},
          {"layer_id", layer_json(of.layer)},
          {"shape", of.ne},
          {"same_shape", of.same_shape},
          {"max_error", finite_json(of.max_error)},
          {"relative_error", finite_json(of.relative_error)},
          {"element", of.at},
          {"left", finite_json(double{of.left})},
          {"right", finite_json(double{of.right})}};
}

Json layers_json(const ValuesComparison& comparison) {
  Json layers = Json::array();
  for (const LayerDifference& of : comparison.layers) {
    layers.push_back({{"layer_id", layer_json(of.layer)},
                      {"outputs", of.outputs},
                      {"max_error", finite_json(of.max_error)},
                      {"relative_error", finite_json(of.relative_error)}});
  }
  return layers;
}

}  // namespace

Json to_json(const Comparison& comparison, const SessionInfo& left, const SessionInfo& right) {
  Json templates = Json::array();
  for (const ComparedTemplate& row : comparison.templates) templates.push_back(template_json(row));
  Json rows = Json::array();
  for (const ComparedRow& row : comparison.rows) rows.push_back(to_json(row));
  Json step_times = Json::object();
  for (const auto& [phase, of] : comparison.step_times) {
    step_times[to_text(phase)] = {{"comparable", is_comparable(comparison, phase)},
                                  {"left", times_json(of.left)},
                                  {"right", times_json(of.right)},
                                  {"left_text", times_text(of.left)},
                                  {"right_text", times_text(of.right)}};
  }
  return {
      {"left", session_json(left)},
      {"right", session_json(right)},
      {"change", {{"text", what_changed(comparison)}, {"token", token_json(comparison.change)}}},
      {"causes", to_json(comparison.causes)},
      {"facts", facts_json(comparison.facts)},
      {"phase", to_text(comparison.phase)},
      {"total", to_json(comparison.total)},
      {"step_ns", std::move(step_times)},
      {"tokens", tokens_json(comparison)},
      {"chosen", chosen_json(comparison)},
      {"templates", std::move(templates)},
      {"templates_text", graphs_text(comparison)},
      {"rows", std::move(rows)}};
}

Json to_json(const ValuesComparison& comparison) {
  const std::optional<ValuesDifference>& first = comparison.first_beyond;
  Json outputs = Json::array();
  for (const ValuesDifference& of : comparison.rows) outputs.push_back(output_json(of));
  return {{"tolerance", comparison.tolerance},
          {"first_beyond", first ? output_json(*first) : Json()},
          {"only_left", comparison.only_left},
          {"only_right", comparison.only_right},
          {"other_tokens_from_step",
           comparison.other_tokens ? Json(comparison.other_tokens->v) : Json()},
          {"total", comparison.compared},
          {"different", comparison.different},
          {"layers", layers_json(comparison)},
          {"outputs", std::move(outputs)}};
}

Json to_json(const ValuesPicture& picture) {
  const auto cells = [](std::span<const float> of) {
    Json json = Json::array();
    for (const float value : of) json.push_back(finite_json(double{value}));
    return json;
  };
  return {{"output", output_json(picture.output)},
          {"width", picture.width},
          {"height", picture.height},
          {"left", cells(picture.left)},
          {"right", cells(picture.right)}};
}

}  // namespace tt
