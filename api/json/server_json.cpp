#include "api/json/server_json.h"

#include "api/json/bounded_json.h"
#include "api/json/version.h"
#include "tracer/format/model/session.h"

namespace tt {

Json to_json(const RecordedProgram& program) {
  return {
      {"name", program.name}, {"request", program.request}, {"ended", text_or_null(program.ended)}};
}

std::optional<RecordedProgram> parse_recorded_program(std::string_view json) {
  const auto parsed = parse_json(json);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const auto text = [&](const char* name) {
    const auto found = parsed->find(name);
    return found != parsed->end() && found->is_string() ? found->get<std::string>() : "";
  };
  RecordedProgram program{.name = text("name"), .request = text("request"), .ended = text("ended")};
  if (program.name.empty()) return std::nullopt;
  return program;
}

Json to_json(const ServerInfo& facts) {
  return {{"start_utc_ns", facts.start_utc_ns},
          {"host", facts.host},
          {"cpu", facts.cpu},
          {"cores", facts.cores},
          {"memory_bytes", facts.memory_bytes},
          {"data_dir", facts.data_dir},
          {"data_bytes", facts.data_bytes},
          {"data_quota_bytes", optional_json(facts.data_quota_bytes)},
          {"disk_free_bytes", facts.disk_free_bytes},
          {"models_dir", facts.models_dir.empty() ? Json() : Json(facts.models_dir)},
          {"models_loaded_limit", facts.models_loaded_limit},
          {"live_clients", facts.live_clients},
          {"queue_limit", facts.queue_limit},
          {"recorded_program", facts.recorded_program ? to_json(*facts.recorded_program) : Json()}};
}

Json version_json(const LibraryVersions& libraries, const std::vector<std::string>& backends) {
  return {{"server", kVersion},
          {"api", kApiVersion},
          {"live_protocol", kLiveProtocol},
          {"trace_format", kFormatVersion},
          {"libllama", libraries.llama},
          {"ggml", libraries.ggml},
          {"backends", backends}};
}

}  // namespace tt
