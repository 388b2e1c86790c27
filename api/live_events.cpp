#include "api/live_events.h"

#include "api/trace_json.h"
#include "api/version.h"

namespace tt {

namespace {

Json kinds_json(LiveKinds kinds) {
  Json out = Json::array();
  if (kinds.token) out.push_back("token");
  if (kinds.step) out.push_back("step");
  if (kinds.op) out.push_back("op");
  if (kinds.progress) out.push_back("progress");
  return out;
}

bool add_kind(LiveKinds& kinds, const Json& name) {
  if (name == "token") return kinds.token = true;
  if (name == "step") return kinds.step = true;
  if (name == "op") return kinds.op = true;
  if (name == "progress") return kinds.progress = true;
  return false;
}

Json event(const char* type, std::string_view session) {
  return {{"type", type}, {"session", session}};
}

}  // namespace

std::expected<LiveCommand, std::string> parse_live_command(std::string_view text) {
  const auto refuse = [](const char* what) {
    return std::unexpected(std::string(what) +
                           R"( Send {"type": "subscribe", "session": an id or "*", "kinds": )"
                           R"(["token", "step", "op", "progress"]} or )"
                           R"({"type": "unsubscribe", "session": ...}.)");
  };
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("type")) return refuse("That is no command.");
  LiveCommand command;
  if (json["type"] == "unsubscribe") {
    command.type = LiveCommand::Type::Unsubscribe;
  } else if (json["type"] != "subscribe") {
    return refuse("The type is unknown.");
  }
  for (const auto& [name, value] : json.items()) {
    const bool known = name == "type" || name == "session" ||
                       (name == "kinds" && command.type == LiveCommand::Type::Subscribe);
    if (!known) return refuse("There is a field too many.");
  }
  if (!json.contains("session") || !json["session"].is_string())
    return refuse("The session is missing.");
  command.session = json["session"].get<std::string>();
  if (command.type == LiveCommand::Type::Unsubscribe) return command;
  if (!json.contains("kinds") || !json["kinds"].is_array()) return refuse("The kinds are missing.");
  for (const Json& kind : json["kinds"]) {
    if (!add_kind(command.kinds, kind)) return refuse("A kind is unknown.");
  }
  return command;
}

std::string hello_event() {
  return text_of(Json{{"type", "hello"},
                      {"protocol", kLiveProtocol},
                      {"server", std::string("tensor-trace ") + kVersion}});
}

std::string subscribed_event(std::string_view session, LiveKinds kinds, std::uint32_t number) {
  Json out = event("subscribed", session);
  out["kinds"] = kinds_json(kinds);
  out["number"] = number;
  return text_of(out);
}

std::string unsubscribed_event(std::string_view session) {
  return text_of(event("unsubscribed", session));
}

std::string error_event(std::string_view code, std::string_view detail) {
  return text_of(Json{{"type", "error"}, {"code", code}, {"detail", detail}});
}

std::string state_event(const JobStatus& status) {
  Json out = event("state", status.id);
  out["state"] = to_text(status.state);
  out["position"] = status.position;
  out["error"] = status.error.empty() ? Json() : Json(status.error);
  return text_of(out);
}

std::string progress_event(const JobStatus& status) {
  Json out = event("progress", status.id);
  out["prompt_done"] = status.prompt_done;
  out["prompt_tokens"] = status.prompt_tokens;
  out["generated"] = status.generated;
  out["max_tokens"] = status.max_tokens;
  return text_of(out);
}

std::string token_event(std::string_view session, const Token& token, std::string_view text) {
  Json out = event("token", session);
  out.update(to_json(token));
  out["text"] = text;
  return text_of(out);
}

std::string text_event(std::string_view session, std::string_view text) {
  Json out = event("text", session);
  out["text"] = text;
  return text_of(out);
}

std::string step_event(std::string_view session, const StepSummary& step) {
  Json out = event("step", session);
  out.update(to_json(step));
  return text_of(out);
}

std::string loss_event(std::string_view session, std::uint64_t frames) {
  Json out = event("loss", session);
  out["frames"] = frames;
  return text_of(out);
}

}  // namespace tt
