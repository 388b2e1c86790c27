#include "api/exchange/rows/session_metadata.h"

#include <utility>

#include "api/json/session_json.h"
#include "tracer/text/utf8.h"

namespace tt::exchange {

Json to_json(const SessionInfo& info) {
  Json files = Json::array(), facts = Json::object();
  for (const ModelFile& file : info.model_files) {
    files.push_back({{"path", file.path},
                     {"size", file.size},
                     {"mtime_ns", file.mtime_ns},
                     {"header_hash", file.header_hash}});
  }
  for (const auto& [name, value] : info.facts) facts[to_valid_utf8(name)] = value;
  return {{"id", info.id},
          {"title", info.title},
          {"start_utc_ns", info.start_utc_ns},
          {"level", to_text(info.level)},
          {"exact_timing", info.exact_timing},
          {"state", to_text(info.state)},
          {"error", info.error},
          {"n_layers", info.n_layers},
          {"n_heads", info.n_heads},
          {"n_heads_kv", info.n_heads_kv},
          {"n_embd", info.n_embd},
          {"n_vocab", info.n_vocab},
          {"n_experts", info.n_experts},
          {"n_experts_used", info.n_experts_used},
          {"model_files", std::move(files)},
          {"facts", std::move(facts)}};
}

std::expected<Json, TraceError> session_metadata(const SessionRows& rows) {
  const auto count = rows.reader().step_count();
  if (!count) return std::unexpected(count.error());
  const auto losses = rows.reader().losses();
  if (!losses) return std::unexpected(losses.error());
  Json json = to_json(rows.session());
  json["losses"] = to_json(*losses);
  json["steps"] = *count;
  if (rows.steps() != *count)
    json["range"] = {{"first_step", rows.first().v}, {"steps", rows.steps()}};
  return json;
}

std::string safe_file_id(const std::string& id, const std::string& fallback) {
  const auto usable = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  constexpr std::size_t kMaxIdLength = 100;
  if (!id.empty() && id.size() <= kMaxIdLength && std::ranges::all_of(id, usable)) return id;
  std::string made;
  for (const char c : fallback.substr(0, kMaxIdLength)) made += usable(c) ? c : '-';
  return made.empty() ? "imported" : made;
}

std::string text_in(const Json& json, const char* name, std::string fallback) {
  const auto found = json.find(name);
  return found == json.end() || !found->is_string() ? std::move(fallback)
                                                    : found->get<std::string>();
}

bool flag_in(const Json& json, const char* name, bool fallback) {
  const auto found = json.find(name);
  return found == json.end() || !found->is_boolean() ? fallback : found->get<bool>();
}

SessionInfo session_from(const Json& json) {
  SessionInfo info;
  if (!json.is_object()) return info;
  info.id = text_in(json, "id");
  info.title = text_in(json, "title");
  info.start_utc_ns = number_in<std::int64_t>(json, "start_utc_ns");
  info.level = enum_from(text_in(json, "level"), Level::Verbose, Level::Detailed);
  info.exact_timing = flag_in(json, "exact_timing");
  info.state = enum_from(text_in(json, "state"), SessionState::Recovered, SessionState::Done);
  if (info.state == SessionState::Running) info.state = SessionState::Recovered;
  info.error = text_in(json, "error");
  info.n_layers = number_in<std::uint32_t>(json, "n_layers");
  info.n_heads = number_in<std::uint32_t>(json, "n_heads");
  info.n_heads_kv = number_in<std::uint32_t>(json, "n_heads_kv");
  info.n_embd = number_in<std::uint32_t>(json, "n_embd");
  info.n_vocab = number_in<std::uint32_t>(json, "n_vocab");
  info.n_experts = number_in<std::uint32_t>(json, "n_experts");
  info.n_experts_used = number_in<std::uint32_t>(json, "n_experts_used");
  if (const auto files = json.find("model_files"); files != json.end() && files->is_array()) {
    for (const Json& file : *files) {
      if (!file.is_object()) continue;
      info.model_files.push_back({.path = text_in(file, "path"),
                                  .size = number_in<std::uint64_t>(file, "size"),
                                  .mtime_ns = number_in<std::int64_t>(file, "mtime_ns"),
                                  .header_hash = text_in(file, "header_hash")});
    }
  }
  if (const auto facts = json.find("facts"); facts != json.end() && facts->is_object()) {
    for (const auto& [name, value] : facts->items())
      if (value.is_string()) info.facts.emplace_back(name, value.get<std::string>());
  }
  return info;
}

LossCounters losses_from(const Json& json) {
  if (!json.is_object()) return {};
  return {.steps_without_times = number_in<std::uint64_t>(json, "steps_without_times"),
          .slot_values_dropped = number_in<std::uint64_t>(json, "slot_values_dropped"),
          .count_mismatches = number_in<std::uint64_t>(json, "count_mismatches"),
          .steps_not_written = number_in<std::uint64_t>(json, "steps_not_written"),
          .page_faults_lost = number_in<std::uint64_t>(json, "page_faults_lost")};
}

}  // namespace tt::exchange
