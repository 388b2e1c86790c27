// The command line of tt-server as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "program/installation.h"
#include "server/app/api_key.h"
#include "server/observability/log.h"
#include "tracer/request/model_options.h"

namespace tt {

struct ServerOptions {
  ModelOptions model;                           // without a path: none is loaded at the start
  std::filesystem::path models_dir;             // folder of others; empty: none
  std::size_t models_max = 1;                   // most of them at a time
  std::vector<std::filesystem::path> sessions;  // files and folders that are only read
  ContextOptions context;
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any free one
  std::filesystem::path data_dir;
  std::optional<double> keep_days;
  std::optional<std::uint64_t> keep_bytes;  // the quota
  std::uint64_t disk_reserve = 256u << 20;  // bytes of the disk that stay free
  std::uint64_t max_import = 16ull << 30;   // bytes of a file that is sent to be imported
  std::filesystem::path page;               // folder of the built one
  std::vector<std::string> allowed_hosts;
  ApiKeyOptions api_key;
  std::string public_url;                 // an origin (parse_origin()); empty: none
  std::vector<std::string> cors_origins;  // likewise
  std::size_t max_connections = 512;
  std::size_t max_live_clients = 64;
  LogOptions log;
};

// Reads arguments and environment. The error is the exit code: 0 after --help
// and --version, 2 after a mistake; what there was to say has been printed. A
// key is overwritten where it was given, so that neither the list of processes
// nor a child of this one has it.
std::expected<ServerOptions, int> parse_server_options(int argc, char** argv,
                                                       const Installation& installation);

}  // namespace tt
