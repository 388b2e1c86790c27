// The command line of tt-server as a value.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/options/installation.h"
#include "server/log.h"
#include "tracer/model_options.h"

namespace tt {

struct ServerOptions {
  ModelOptions model;
  ContextOptions context;
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any free one
  std::filesystem::path data_dir;
  std::filesystem::path webui;
  std::vector<std::string> allowed_hosts;
  LogOptions log;
};

// Reads arguments and environment. The error is the exit code: 0 after --help
// and --version, 2 after a mistake; what there was to say has been printed.
std::expected<ServerOptions, int> parse_server_options(int argc, char** argv,
                                                       const Installation& installation);

}  // namespace tt
