#include "api/json/set_json.h"

#include <algorithm>
#include <array>
#include <format>
#include <optional>
#include <utility>

#include "analysis/experts/expert_cache.h"
#include "analysis/report/comparison.h"
#include "api/json/bounded_json.h"
#include "api/json/json.h"
#include "api/json/session_json.h"
#include "tracer/text/join.h"
#include "tracer/text/nearest.h"

namespace tt {

namespace {

constexpr std::size_t kMaxText = 200;

std::expected<Json, Problem> body_with(std::string_view text, const char* expected,
                                       const std::vector<std::string>& fields) {
  auto body = parse_json_body(text, expected);
  if (!body) return body;
  for (const auto& [name, value] : body->items())
    if (!std::ranges::contains(fields, name))
      return bad_request(unknown_name("field", shortened(name), fields));
  return body;
}

std::expected<std::vector<std::string>, Problem> ids_in(const Json& list, const char* field,
                                                        std::size_t max) {
  if (list.empty() || list.size() > max)
    return bad_request(std::format("\"{}\" must have 1 to {} ids of sessions.", field, max));
  std::vector<std::string> ids;
  for (const Json& id : list) {
    if (!id.is_string())
      return bad_request(std::format("\"{}\" must have the ids of sessions as strings.", field));
    ids.push_back(id.get<std::string>());
  }
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  return ids;
}

std::expected<SetSelector, Problem> set_in(const Json& body, const char* field, std::size_t max) {
  const auto found = body.find(field);
  SetSelector set;
  if (found != body.end() && found->is_array()) {
    auto ids = ids_in(*found, field, max);
    if (!ids) return std::unexpected(ids.error());
    set.ids = *std::move(ids);
    return set;
  }
  if (found == body.end() || !found->is_object()) {
    return bad_request(
        std::format("\"{}\" must be a list of ids of sessions, or a filter such as {{"
                    "\"model\": \"x.gguf\"}}.",
                    field));
  }
  const std::array<std::pair<const char*, std::string*>, 3> filters = {
      {{"q", &set.words}, {"state", &set.state}, {"model", &set.model}}};
  for (const auto& [name, value] : found->items()) {
    const auto filter = std::ranges::find(filters, name, [](const auto& of) { return of.first; });
    if (filter == filters.end()) {
      return bad_request(unknown_name("filter", shortened(name),
                                      {filters[0].first, filters[1].first, filters[2].first}));
    }
    if (!value.is_string() || value.get_ref<const std::string&>().size() > kMaxText)
      return bad_request(std::format("\"{}\" must be a text of at most {} bytes.", name, kMaxText));
    *filter->second = value.get<std::string>();
  }
  if (!set.state.empty() && !std::ranges::contains(kSessionStates, std::string_view(set.state)))
    return bad_request(std::format("\"state\" must be one of {}.", join(kSessionStates)));
  return set;
}

// nullopt: missing.
std::expected<std::optional<bool>, Problem> flag_in(const Json& body, const char* name) {
  const auto found = body.find(name);
  if (found == body.end()) return std::nullopt;
  if (found->is_boolean()) return found->get<bool>();
  return bad_request(std::format("\"{}\" must be true or false.", name));
}

// nullopt: missing.
std::expected<std::optional<std::uint64_t>, Problem> number_in(const Json& body, const char* name,
                                                               std::uint64_t least,
                                                               std::uint64_t most) {
  const auto found = body.find(name);
  if (found == body.end()) return std::nullopt;
  if (found->is_number_unsigned()) {
    const auto number = found->get<std::uint64_t>();
    if (number >= least && number <= most) return number;
  }
  return bad_request(std::format("\"{}\" must be an integer from {} to {}.", name, least, most));
}

}  // namespace

std::expected<SetQueryBody, Problem> parse_set_query_body(std::string_view text) {
  std::vector<std::string> fields(kQueryFields.begin(), kQueryFields.end());
  fields.emplace_back("sessions");
  const auto body = body_with(
      text, R"(The body must be a JSON object: {"sessions": ["ID", "ID"], "sql": "SELECT ..."}.)",
      fields);
  if (!body) return std::unexpected(body.error());
  auto sessions = set_in(*body, "sessions", kMaxQuerySessions);
  if (!sessions) return std::unexpected(sessions.error());
  return query_in(*body).transform([&](QueryBody query) {
    return SetQueryBody{.sessions = *std::move(sessions), .query = std::move(query)};
  });
}

std::expected<SetComparisonBody, Problem> parse_set_comparison_body(std::string_view text) {
  const auto body =
      body_with(text, R"(The body must be a JSON object: {"left": ["ID"], "right": ["ID"]}.)",
                {"left", "right", "by", "clean"});
  if (!body) return std::unexpected(body.error());
  SetComparisonBody out;
  for (const auto& [name, side] : {std::pair{"left", &SetComparisonBody::left},
                                   std::pair{"right", &SetComparisonBody::right}}) {
    auto set = set_in(*body, name, kMaxComparedSessions);
    if (!set) return std::unexpected(set.error());
    out.*side = *std::move(set);
  }
  if (const auto by = body->find("by"); by != body->end()) {
    const auto axis =
        std::ranges::find_if(kComparedAxes, [&](Axis of) { return *by == to_text(of); });
    if (axis == kComparedAxes.end()) {
      return bad_request(std::format("\"by\" must be one of {}.",
                                     join(kComparedAxes, [](Axis of) { return to_text(of); })));
    }
    out.by = *axis;
  }
  const auto clean = flag_in(*body, "clean");
  if (!clean) return std::unexpected(clean.error());
  if (*clean) out.leave_out = **clean ? LeaveOut::Disturbed : LeaveOut::Nothing;
  return out;
}

std::expected<GeneralityBody, Problem> parse_generality_body(std::string_view text) {
  const auto body =
      body_with(text, R"(The body must be a JSON object: {"sessions": ["ID", "ID"]}.)",
                {"sessions", "slots", "memory"});
  if (!body) return std::unexpected(body.error());
  auto sessions = set_in(*body, "sessions", kMaxGeneralitySessions);
  if (!sessions) return std::unexpected(sessions.error());
  constexpr std::uint64_t kMaxBytes = (std::uint64_t{1} << 53) - 1;  // exact in a double
  const auto slots = number_in(*body, "slots", 1, kMaxExpertSlots);
  if (!slots) return std::unexpected(slots.error());
  const auto memory = number_in(*body, "memory", 1, kMaxBytes);
  if (!memory) return std::unexpected(memory.error());
  GeneralityBody out{.sessions = *std::move(sessions), .query = {}};
  out.query.slots = static_cast<std::uint32_t>(slots->value_or(0));
  if (*memory) out.query.memory = Bytes{**memory};
  return out;
}

std::expected<TrendBody, Problem> parse_trend_body(std::string_view text) {
  const auto body =
      body_with(text, R"(The body must be a JSON object: {"sessions": ["ID", "ID"]}.)",
                {"sessions", "by", "disturbed"});
  if (!body) return std::unexpected(body.error());
  auto sessions = set_in(*body, "sessions", kMaxTrendSessions);
  if (!sessions) return std::unexpected(sessions.error());
  TrendBody out{.sessions = *std::move(sessions), .query = {}};
  if (const auto by = body->find("by"); by != body->end()) {
    constexpr std::array kPoints = {TrendBy::Day, TrendBy::Session};
    const auto point =
        std::ranges::find_if(kPoints, [&](TrendBy of) { return *by == to_text(of); });
    if (point == kPoints.end()) {
      return bad_request(std::format("\"by\" must be one of {}.",
                                     join(kPoints, [](TrendBy of) { return to_text(of); })));
    }
    out.query.by = *point;
  }
  const auto disturbed = flag_in(*body, "disturbed");
  if (!disturbed) return std::unexpected(disturbed.error());
  if (*disturbed) out.query.leave_out = **disturbed ? LeaveOut::Nothing : LeaveOut::Disturbed;
  return out;
}

}  // namespace tt
