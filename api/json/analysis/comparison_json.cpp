#include "api/json/analysis/comparison_json.h"

#include <optional>

#include "api/json/analysis/conditions_json.h"
#include "api/json/trace_json.h"
#include "api/text/cause_text.h"

namespace tt {

namespace {

// The compared measures.
struct Measure {
  const char* name;
  double (*of)(const TraceSums&);
};
constexpr Measure kMeasures[] = {
    {"accesses", [](const TraceSums& s) { return s.accesses(); }},
    {"bytes_read", [](const TraceSums& s) { return s.bytes_read; }},
    {"bytes_written", [](const TraceSums& s) { return s.bytes_written; }},
    {"executions", [](const TraceSums& s) { return s.executions; }},
    {"time_ns", [](const TraceSums& s) { return s.time_ns; }},
};

Json side_json(const std::optional<TraceSums>& sums) {
  if (!sums) return {};
  Json json;
  for (const Measure& measure : kMeasures) json[measure.name] = measure.of(*sums);
  return json;
}

// Right minus left, and right divided by left; null when left is 0.
void add_difference(Json& json, const std::optional<TraceSums>& left,
                    const std::optional<TraceSums>& right) {
  const TraceSums none;
  Json difference, ratio;
  for (const Measure& measure : kMeasures) {
    const double a = measure.of(left.value_or(none)), b = measure.of(right.value_or(none));
    difference[measure.name] = b - a;
    ratio[measure.name] = a > 0 ? Json(b / a) : Json();
  }
  json["difference"] = std::move(difference);
  json["ratio"] = std::move(ratio);
}

Json sums_json(const std::optional<TraceSums>& left, const std::optional<TraceSums>& right) {
  Json json{{"left", side_json(left)}, {"right", side_json(right)}};
  add_difference(json, left, right);
  return json;
}

Json compared_row_json(const ComparedRow& row) {
  Json json{{"name", row.name}};
  json.update(sums_json(row.left, row.right));
  return json;
}

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

Json tokens_json(const TokenAlignment& tokens) {
  Json rows = Json::array();
  for (const ComparedToken& row : tokens.rows.rows) {
    rows.push_back({{"index", row.index},
                    {"left", token_side(row.left, row.left_ns)},
                    {"right", token_side(row.right, row.right_ns)}});
  }
  return {{"left", tokens.left},
          {"right", tokens.right},
          {"common", tokens.common},
          {"rows", std::move(rows)}};
}

Json template_json(const ComparedTemplate& row) {
  const auto side = [](TemplateId id, std::uint32_t steps, std::uint32_t ops) {
    return id.v == 0 ? Json() : Json{{"template", id.v}, {"steps", steps}, {"ops", ops}};
  };
  return {{"match", to_text(row.match)},
          {"left", side(row.left, row.left_steps, row.left_ops)},
          {"right", side(row.right, row.right_steps, row.right_ops)}};
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
                    {"reason", cause_reason(cause.kind)},
                    {"facts", facts_json(cause.facts)}});
  }
  return rows;
}

}  // namespace

Json to_json(const Comparison& comparison, const SessionInfo& left, const SessionInfo& right) {
  Json templates = Json::array();
  for (const ComparedTemplate& row : comparison.templates) templates.push_back(template_json(row));
  Json by;
  for (const ComparedBy& axis : comparison.by) {
    Json rows = Json::array();
    for (const ComparedRow& row : axis.rows) rows.push_back(compared_row_json(row));
    by[to_text(axis.by)] = std::move(rows);
  }
  Json step_times = Json::object();
  for (const auto& [phase, of] : comparison.step_times) {
    step_times[to_text(phase)] = {{"left", of.left ? to_json(*of.left) : Json()},
                                  {"right", of.right ? to_json(*of.right) : Json()}};
  }
  return {{"left", session_json(left)},
          {"right", session_json(right)},
          {"causes", to_json(comparison.causes)},
          {"facts", facts_json(comparison.facts)},
          {"total", sums_json(comparison.left, comparison.right)},
          {"step_ns", std::move(step_times)},
          {"tokens", tokens_json(comparison.tokens)},
          {"templates", std::move(templates)},
          {"by", std::move(by)}};
}

Json to_json(const WithinComparison& comparison) {
  Json json{{"of", to_text(comparison.axis)},
            {"left", comparison.left},
            {"right", comparison.right},
            {"sums", sums_json(comparison.left_sums, comparison.right_sums)},
            {"damaged_steps", comparison.damaged_steps},
            {"left_out_steps", comparison.left_out_steps}};
  json.update(page_json("rows", comparison.rows, compared_row_json));
  return json;
}

}  // namespace tt
