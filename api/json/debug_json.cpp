#include "api/json/debug_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <iterator>
#include <utility>

#include "api/json/bounded_json.h"
#include "tracer/text/join.h"
#include "tracer/text/nearest.h"

namespace tt {

namespace {

constexpr std::array<std::pair<std::string_view, RunUntil>, 4> kUntil = {
    {{"breakpoint", RunUntil::Breakpoint},
     {"op", RunUntil::Op},
     {"layer", RunUntil::Layer},
     {"step", RunUntil::Step}}};

std::optional<std::uint32_t> count_of(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto count = value.get<std::uint64_t>();
  if (count == 0 || count > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(count);
}

Json to_json(const OpPlace& place) {
  return {{"step", place.step.v},
          {"first_token", place.first_token},
          {"tokens", place.n_tokens},
          {"op", place.op.v},
          {"layer_id", layer_json(place.layer)},
          {"operation_type", place.operation},
          {"tensor_name", place.name}};
}

Json to_json(const OutputStatistics& of) {
  Json json = {{"elements", of.elements}, {"nan", of.nan}, {"inf", of.inf}};
  const std::pair<const char*, double> numbers[] = {
      {"min", of.min}, {"max", of.max}, {"mean", of.mean}, {"std", of.std}, {"norm", of.norm}};
  const bool has_finite = of.elements > of.nan + of.inf;
  for (const auto& [name, number] : numbers) json[name] = has_finite ? Json(number) : Json();
  return json;
}

Json to_json(const DebugStop& stop) {
  Json tensors = Json::array();
  for (const StoppedTensor& of : stop.tensors) {
    tensors.push_back({{"label", of.label},
                       {"name", of.name},
                       {"type", of.type},
                       {"shape", of.ne},
                       {"unreadable", text_or_null(of.unreadable)}});
  }
  return {{"number", stop.number},         {"place", to_json(stop.place)},
          {"before", stop.is_before},      {"breakpoints", stop.breakpoints},
          {"tensors", std::move(tensors)}, {"changeable", stop.changeable}};
}

}  // namespace

std::expected<DebugCommand, Problem> parse_debug_command(std::string_view body) {
  const auto json = parse_json_body(
      body, R"(The body must be a JSON object, for example {"until": "op", "count": 3}.)");
  if (!json) return std::unexpected(json.error());
  return debug_command_of(*json);
}

std::expected<DebugCommand, Problem> debug_command_of(const Json& json) {
  if (!json.is_object())
    return bad_request(
        R"(The command must be an object, for example {"until": "op", "count": 3}.)");
  // A field that goes with another one.
  const std::string_view with = json.contains("until") ? "count" : "keep";
  const bool has_both = json.contains(with);
  if (json.size() != (has_both ? 2U : 1U) ||
      (has_both && !json.contains("until") && !json.contains("change"))) {
    return bad_request(
        R"(Set exactly one of "until" (with "count"), "stop", "break", "delete", "change" (with )"
        R"("keep") and "release".)");
  }
  const bool has_count = has_both && with == "count";
  const auto& name =
      has_both && json.begin().key() == with ? std::next(json.begin()).key() : json.begin().key();
  const Json& value = json.at(name);
  const auto text = value.is_string() ? value.get<std::string>() : std::string();
  if (name == "until") {
    const auto* const until =
        std::ranges::find(kUntil, std::string_view(text), [](const auto& of) { return of.first; });
    if (until == kUntil.end()) {
      return bad_request(std::format("\"until\" must be one of {}.",
                                     join(kUntil, [](const auto& of) { return of.first; })));
    }
    const auto count = has_count ? count_of(json.at("count")) : std::optional(1U);
    if (!count) return bad_request("\"count\" must be an integer from 1 to 4294967295.");
    return ResumeRun{.until = until->second, .count = *count};
  }
  if (name == "stop") {
    if (value != true) return bad_request("\"stop\" must be true.");
    return StopRun{};
  }
  if (name == "delete") {
    const auto number = count_of(value);
    if (!number) return bad_request("\"delete\" must be the number of a breakpoint.");
    return DeleteBreakpoint{*number};
  }
  if (name == "release") {
    const auto number = count_of(value);
    if (!number) return bad_request("\"release\" must be the number of a kept change.");
    return ReleaseChange{*number};
  }
  if (name != "break" && name != "change") {
    return bad_request(
        unknown_name("field", shortened(name),
                     {"until", "count", "stop", "break", "delete", "change", "keep", "release"}));
  }
  if (text.empty()) return bad_request(std::format("\"{}\" must be a text.", name));
  if (name == "break") return AddBreakpoint{text};
  if (has_both && !json.at("keep").is_boolean())
    return bad_request("\"keep\" must be true or false.");
  return ChangeOutput{.text = text, .keep = has_both && json.at("keep").get<bool>()};
}

Json to_json(const DebugState& state) {
  Json breakpoints = Json::array(), changes = Json::array(), kept = Json::array(),
       watched = Json::array();
  for (const NumberedBreakpoint& of : state.breakpoints)
    breakpoints.push_back({{"number", of.number}, {"text", of.text}, {"hits", of.hits}});
  for (const MadeChange& of : state.changes) {
    changes.push_back({{"place", to_json(of.place)},
                       {"text", of.text},
                       {"elements", of.elements},
                       {"last_step", of.last_step.v},
                       {"kept", of.kept == 0 ? Json() : Json(of.kept)}});
  }
  for (const KeptChange& of : state.kept) {
    kept.push_back({{"number", of.number},
                    {"place", to_json(of.place)},
                    {"text", of.text},
                    {"steps", of.steps},
                    {"problem", text_or_null(of.problem)}});
  }
  for (const WatchedOutput& of : state.watched.rows) {
    watched.push_back({{"breakpoint", of.breakpoint},
                       {"place", to_json(of.place)},
                       {"statistics", of.statistics ? to_json(*of.statistics) : Json()}});
  }
  return {{"stop", state.stop ? to_json(*state.stop) : Json()},
          {"time_left_ms", state.time_left ? Json(state.time_left->count()) : Json()},
          {"breakpoints", std::move(breakpoints)},
          {"changes", std::move(changes)},
          {"kept", std::move(kept)},
          {"watched", std::move(watched)},
          {"watched_from", state.watched.first}};
}

// JSON has no NaN and no infinity: they are the texts that Python's float() reads.
Json to_json(const TensorValues& values) {
  Json elements = Json::array();
  for (const float value : values.values) {
    if (std::isfinite(value))
      elements.push_back(value);
    else
      elements.push_back(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
  }
  return {{"shape", values.ne},
          {"statistics", to_json(values.statistics)},
          {"values", std::move(elements)}};
}

}  // namespace tt
