#include "api/live/live_events.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include "api/json/bounded_json.h"
#include "api/json/json.h"
#include "api/json/trace_json.h"
#include "api/json/version.h"

namespace tt {

namespace {

constexpr std::pair<const char*, bool LiveKinds::*> kKinds[] = {{"token", &LiveKinds::token},
                                                                {"step", &LiveKinds::step},
                                                                {"op", &LiveKinds::op},
                                                                {"routing", &LiveKinds::routing},
                                                                {"progress", &LiveKinds::progress}};
constexpr std::pair<const char*, std::uint32_t LivePosition::*> kPositionFields[] = {
    {"token", &LivePosition::token},
    {"step", &LivePosition::step},
    {"op", &LivePosition::op},
    {"routing", &LivePosition::routing}};

Json event(const char* type, std::string_view session) {
  return {{"type", type}, {"session", session}};
}

// ---------------------------------------------------------------- commands

using ParsedCommand = std::expected<LiveCommand, std::string>;
using ParseStatus = std::expected<void, std::string>;

std::unexpected<std::string> reject(std::string what) {
  return std::unexpected(std::move(what) +
                         R"( Send {"type": "subscribe", "session": an id or "*", "kinds": )"
                         R"(["token", "step", "op", "routing", "progress"], optional "from": )"
                         R"({"token": 0, "step": 0, "op": 0, "routing": 0}, "thin": "none" or )"
                         R"("latest"}, {"type": "unsubscribe", "session": ...}, )"
                         R"({"type": "debug", "session": ..., optional "command": an object} or )"
                         R"({"type": "ack", "bytes": total received}.)");
}

template <class Fields>
auto* find(const Fields& fields, const std::string& name) {
  const auto found = std::ranges::find(fields, name, [](const auto& field) { return field.first; });
  return found == std::ranges::end(fields) ? nullptr : &*found;
}

ParseStatus read_kinds(const Json& names, LiveKinds& kinds) {
  if (!names.is_array()) return reject(R"("kinds" must be an array.)");
  for (const Json& name : names) {
    const auto* kind = name.is_string() ? find(kKinds, name.get<std::string>()) : nullptr;
    if (kind == nullptr) return reject(R"("kinds" contains an unknown kind.)");
    kinds.*(kind->second) = true;
  }
  return {};
}

ParseStatus read_position(const Json& numbers, LivePosition& at) {
  if (!numbers.is_object()) return reject(R"("from" must be an object.)");
  for (const auto& [name, number] : numbers.items()) {
    const auto* member = find(kPositionFields, name);
    if (member == nullptr) return reject(R"("from" contains an unknown field.)");
    if (!number.is_number_unsigned() ||
        number.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max())
      return reject(R"(Fields of "from" must be integers from 0 to 4294967295.)");
    at.*(member->second) = number.get<std::uint32_t>();
  }
  return {};
}

bool has_only(const Json& json, std::initializer_list<std::string_view> names) {
  return std::ranges::all_of(
      json.items(), [&](const auto& item) { return std::ranges::contains(names, item.key()); });
}

ParsedCommand parse_subscribe(const Json& json) {
  Subscribe command;
  if (!has_only(json, {"type", "session", "kinds", "from", "thin"}))
    return reject("Unknown field.");
  command.session = json["session"].get<std::string>();
  if (auto read = read_kinds(json.value("kinds", Json()), command.kinds); !read)
    return std::unexpected(read.error());
  if (json.contains("from")) {
    if (auto read = read_position(json["from"], command.from.emplace()); !read)
      return std::unexpected(read.error());
  }
  if (json.contains("thin")) {
    if (json["thin"] != "none" && json["thin"] != "latest") return reject(R"("thin" is unknown.)");
    if (json["thin"] == "latest") command.thin = Thin::Latest;
  }
  return command;
}

ParsedCommand parse_acknowledge(const Json& json) {
  if (!has_only(json, {"type", "bytes"})) return reject("Unknown field.");
  const Json bytes = json.value("bytes", Json());
  if (!bytes.is_number_unsigned()) return reject(R"("bytes" must be an unsigned integer.)");
  return Acknowledge{bytes.get<std::uint64_t>()};
}

ParsedCommand parse_debug(const Json& json) {
  if (!has_only(json, {"type", "session", "command"})) return reject("Unknown field.");
  DebugSession out{.session = json["session"].get<std::string>(), .command = {}};
  if (!json.contains("command")) return out;
  auto command = debug_command_of(json["command"]);
  if (!command) return std::unexpected(std::move(command.error().detail));
  out.command = *std::move(command);
  return out;
}

}  // namespace

ParsedCommand parse_live_command(std::string_view text) {
  const auto parsed = parse_json(text);
  if (!parsed || !parsed->is_object() || !parsed->contains("type")) return reject("Not a command.");
  const Json& json = *parsed;
  if (json["type"] == "ack") return parse_acknowledge(json);
  if (json["type"] != "subscribe" && json["type"] != "unsubscribe" && json["type"] != "debug")
    return reject(R"("type" is unknown.)");
  if (!json.contains("session") || !json["session"].is_string())
    return reject(R"("session" must be a string.)");
  if (json["type"] == "subscribe") return parse_subscribe(json);
  if (json["type"] == "debug") return parse_debug(json);
  if (!has_only(json, {"type", "session"})) return reject("Unknown field.");
  return Unsubscribe{json["session"].get<std::string>()};
}

// ---------------------------------------------------------------- events

std::string hello_event(std::size_t window) {
  return text_of(Json{{"type", "hello"},
                      {"protocol", kLiveProtocol},
                      {"server", std::string("tensor-trace ") + kVersion},
                      {"window", window}});
}

std::string list_event() { return text_of(Json{{"type", "list"}}); }

std::string subscribed_event(const Subscribe& what, std::uint32_t number) {
  Json out = event("subscribed", what.session);
  out["number"] = number;
  Json& kinds = out["kinds"] = Json::array();
  for (const auto& [name, kind] : kKinds)
    if (what.kinds.*kind) kinds.push_back(name);
  out["thin"] = what.thin == Thin::Latest ? "latest" : "none";
  if (what.from)
    for (const auto& [name, member] : kPositionFields) out["from"][name] = (*what.from).*member;
  return text_of(out);
}

std::string unsubscribed_event(std::string_view session) {
  return text_of(event("unsubscribed", session));
}

std::string debug_event(std::string_view session, const DebugState& state) {
  Json out = event("debug", session);
  out["state"] = to_json(state);
  return text_of(out);
}

std::string error_event(std::string_view code, std::string_view session, std::string_view detail) {
  Json out = {{"type", "error"}, {"code", code}};
  if (!session.empty()) out["session"] = session;
  out["detail"] = detail;
  return text_of(out);
}

std::string state_event(std::string_view session, const LiveState& state) {
  Json out = event("state", session);
  out["state"] = state.state;
  out["position"] = state.position;
  out["error"] = state.error.empty() ? Json() : Json(state.error);
  if (state.stopped) out["stopped"] = state.stopped->empty() ? Json() : Json(*state.stopped);
  if (!state.stopped_ahead.empty()) out["stopped_ahead"] = state.stopped_ahead;
  return text_of(out);
}

std::string state_event(const JobStatus& status) {
  return state_event(
      status.id, {.state = to_text(status.state),
                  .position = status.position,
                  .error = status.error,
                  .stopped = status.stops == 0 ? std::nullopt
                                               : std::optional<std::string_view>(status.stopped),
                  .stopped_ahead = status.stopped_ahead});
}

std::string progress_event(const JobStatus& status) {
  Json out = event("progress", status.id);
  out["prompt_done"] = status.prompt_done;
  out["prompt_tokens"] = status.prompt_tokens;
  out["generated"] = status.generated;
  out["max_tokens"] = status.max_tokens;
  return text_of(out);
}

std::string op_event(std::string_view session, StepId step, OpId number, const NewGraphOp& op,
                     std::uint32_t graph_nodes) {
  Json out = event("op", session);
  out["step"] = step.v;
  out["op"] = number.v;
  out["operation_type"] = op.operation_type;
  out["tensor_name"] = op.tensor_name;
  out["nodes_begun"] = op.nodes;
  out["graph_nodes"] = graph_nodes == 0 ? Json() : Json(graph_nodes);
  return text_of(out);
}

std::string token_event(std::string_view session, const Token& token, std::string_view text) {
  Json out = event("token", session);
  out.update(to_json(token));
  out["text"] = text;
  return text_of(out);
}

std::string text_event(std::string_view session, std::uint32_t index, std::string_view text) {
  Json out = event("text", session);
  out["index"] = index;
  out["text"] = text;
  return text_of(out);
}

std::string step_event(std::string_view session, const StepSummary& step) {
  Json out = event("step", session);
  out.update(to_json(step));
  return text_of(out);
}

std::string loss_event(std::string_view session, const LiveLosses& losses) {
  Json out = event("loss", session);
  out["tokens"] = losses.tokens;
  out["steps"] = losses.steps;
  out["ops"] = losses.ops;
  out["routing"] = losses.routing;
  return text_of(out);
}

std::string sessions_loss_event(std::uint64_t sessions) {
  Json out = event("loss", "*");
  out["sessions"] = sessions;
  return text_of(out);
}

}  // namespace tt
