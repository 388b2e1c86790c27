// Server information as JSON of api/openapi.yaml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json/json.h"
#include "tracer/engine/backends.h"

namespace tt {

// The program that `tt attach --live` records. `tt attach` writes it as JSON to a file, which the
// server that it starts reads with each request.
struct RecordedProgram {
  std::string name;     // of its file
  std::string request;  // a command that makes a request to it; empty: not known
  std::string ended;    // how it ended, and where its sessions are; empty: it runs
};
Json to_json(const RecordedProgram& program);
// nullopt: it is no such object.
std::optional<RecordedProgram> parse_recorded_program(std::string_view json);

struct ServerInfo {
  std::int64_t start_utc_ns = 0;
  std::string host;  // operating system
  std::string cpu;
  std::uint32_t cores = 0;
  std::uint64_t memory_bytes = 0;
  std::string data_dir;
  std::uint64_t data_bytes = 0;  // of all sessions in data_dir, including deleted ones
  std::optional<std::uint64_t> data_quota_bytes;
  std::uint64_t disk_free_bytes = 0;  // of the file system of data_dir
  std::string models_dir;             // empty: not set
  std::uint32_t models_loaded_limit = 1;
  std::uint32_t live_clients = 0;
  std::uint32_t queue_limit = 0;
  std::optional<RecordedProgram> recorded_program;
};
Json to_json(const ServerInfo& facts);

// Versions of this program, its protocols and its libraries.
Json version_json(const LibraryVersions& libraries, const std::vector<std::string>& backends);

}  // namespace tt
