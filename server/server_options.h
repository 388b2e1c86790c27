// The command line of tt-server as a value.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/installation.h"
#include "server/log.h"
#include "tracer/model_options.h"

namespace tt {

struct ServerOptions {
  ModelOptions model;                           // without a path: none is loaded at the start
  std::vector<std::filesystem::path> sessions;  // files and folders that are only read
  ContextOptions context;
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any free one
  std::filesystem::path data_dir;
  std::optional<double> keep_days;
  std::optional<std::uint64_t> keep_bytes;  // the quota
  std::uint64_t disk_reserve = 256u << 20;  // bytes of the disk that stay free
  std::uint64_t max_import = 16ull << 30;   // bytes of a file that is sent to be imported
  std::filesystem::path webui;
  std::vector<std::string> allowed_hosts;
  LogOptions log;
};

// Reads arguments and environment. The error is the exit code: 0 after --help
// and --version, 2 after a mistake; what there was to say has been printed.
std::expected<ServerOptions, int> parse_server_options(int argc, char** argv,
                                                       const Installation& installation);

}  // namespace tt
