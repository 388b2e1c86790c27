#include "api/json/session_json.h"

#include <algorithm>
#include <utility>

#include "api/json/bounded_json.h"
#include "tracer/format/model/server_slots.h"

namespace tt {

namespace {

Json file_json(const ModelFile& file) {
  return {{"path", file.path},
          {"size", file.size},
          {"mtime_ns", file.mtime_ns},
          {"header_hash", file.header_hash}};
}

// The path of the first file and the total size (a split model has several files).
Json model_json(const SessionInfo& info) {
  std::uint64_t size = 0;
  Json files = Json::array();
  for (const ModelFile& file : info.model_files) {
    size += file.size;
    files.push_back(file_json(file));
  }
  return {{"path", info.model_files.empty() ? "" : info.model_files.front().path},
          {"size", size},
          {"files", std::move(files)}};
}

Json program_json(const SessionInfo& info) {
  const auto program = attached_program(info);
  return program ? Json{{"name", program->name}, {"text", program->text}} : Json();
}

// Only known after the session has ended.
void add_reuse(Json& out, const SessionInfo& info) {
  const auto tokens = info.fact_number("result.reused_tokens");
  if (!tokens) return;
  out["reused_tokens"] = *tokens;
  out["reused_from"] = text_or_null(std::string(info.fact("result.reused_from")));
}

Json speed_json(const TokenSpeed& speed) {
  return {{"tokens_per_second", optional_json(speed.per_second())},
          {"tokens", speed.tokens},
          {"ns", speed.ns},
          {"first_token_ns", optional_json(speed.first_token_ns)},
          {"sample_share", optional_json(speed.sample_share())},
          {"prompt_tokens_per_second", optional_json(speed.prompt_per_second())},
          {"prompt_tokens", speed.prompt_tokens},
          {"prompt_ns", speed.prompt_ns}};
}

Problem bad_title(const char* what) {
  return {ErrorCode::BadRequest,
          std::string(what) + " Send {\"title\": \"...\"} with 1 to 200 characters."};
}

}  // namespace

Json to_json(const LossCounters& losses) {
  return {{"steps_without_times", losses.steps_without_times},
          {"slot_values_dropped", losses.slot_values_dropped},
          {"count_mismatches", losses.count_mismatches},
          {"steps_not_written", losses.steps_not_written},
          {"page_faults_lost", losses.page_faults_lost}};
}

Json to_json(const SessionEntry& session) {
  if (!session.overview) {
    return {{"id", session.id},       {"title", ""},       {"state", "unreadable"},
            {"error", session.error}, {"start_utc_ns", 0}, {"file_bytes", session.file_bytes}};
  }
  const SessionInfo& info = session.overview->info;
  Json facts = Json::object();
  for (const auto& [name, value] : info.facts) facts[name] = value;
  Json out{{"id", session.id},
           {"title", info.title},
           {"state", to_text(info.state)},
           {"error", text_or_null(info.error)},
           {"ended", text_or_null(end_text(info))},
           {"program", program_json(info)},
           {"start_utc_ns", info.start_utc_ns},
           {"level", to_text(info.level)},
           {"exact_timing", info.exact_timing},
           {"model", model_json(info)},
           {"n_layers", info.n_layers},
           {"n_heads", info.n_heads},
           {"n_heads_kv", info.n_heads_kv},
           {"n_embd", info.n_embd},
           {"n_vocab", info.n_vocab},
           {"n_experts", info.n_experts},
           {"n_experts_used", info.n_experts_used},
           {"steps", session.overview->steps},
           {"tokens", session.overview->tokens},
           {"speed", speed_json(session.overview->speed)},
           {"file_bytes", session.file_bytes},
           {"losses", to_json(session.overview->losses)},
           {"facts", std::move(facts)}};
  add_reuse(out, info);
  if (const ServerSlots slots = server_slots(info); !slots.empty()) {
    Json of_requests = Json::array();
    for (const auto& slot : slots) of_requests.push_back(optional_json(slot));
    out["server_slots"] = std::move(of_requests);
  }
  return out;
}

Json to_json(const Page<SessionEntryPtr>& sessions) {
  return page_json("sessions", sessions, [](const SessionEntryPtr& row) { return to_json(*row); });
}

std::expected<std::string, Problem> parse_title_body(const std::string& body) {
  constexpr std::ptrdiff_t kMaxCharacters = 200;
  const auto parsed =
      parse_json_body(body, R"(The body must be a JSON object. Send {"title": "..."}.)");
  if (!parsed) return std::unexpected(parsed.error());
  const Json& json = *parsed;
  for (const auto& [name, value] : json.items()) {
    if (name != "title")
      return std::unexpected(bad_title(("Unknown field \"" + shortened(name) + "\".").c_str()));
  }
  const auto title = json.find("title");
  if (title == json.end()) return std::unexpected(bad_title("\"title\" is missing."));
  if (!title->is_string()) return std::unexpected(bad_title("The title must be a string."));
  std::string text = title->get<std::string>();
  const auto characters = std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
  if (characters == 0) return std::unexpected(bad_title("The title is empty."));
  if (characters > kMaxCharacters) return std::unexpected(bad_title("The title is too long."));
  return text;
}

}  // namespace tt
