// Command line options of tt-server.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program/installation.h"
#include "server/app/api_key.h"
#include "server/observability/log.h"
#include "tracer/request/model_options.h"

namespace tt {

struct ServerOptions {
  ModelOptions model;                           // empty path: no model is loaded at startup
  bool no_model = false;                        // no default for `model`
  std::filesystem::path models_dir;             // folder with further models; empty: none
  std::size_t models_max = 1;                   // maximum number of loaded models
  std::vector<std::filesystem::path> sessions;  // files and folders opened read-only
  ContextOptions context;
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any free port
  std::filesystem::path data_dir;
  std::filesystem::path program_file;  // RouteServices::program_file
  std::string notice;                  // about a default that the user may not expect; empty: none
  std::optional<double> keep_days;
  std::optional<std::uint64_t> keep_bytes;  // quota for all sessions
  std::uint64_t disk_reserve = 256u << 20;  // minimum free disk space, bytes
  std::uint64_t max_import = 16ull << 30;   // maximum size of an import, bytes
  std::filesystem::path page;               // folder of the built web UI
  std::vector<std::string> allowed_hosts;
  ApiKeyOptions api_key;
  std::string public_url;                  // an origin (parse_origin()); empty: none
  std::vector<std::string> cors_origins;   // likewise
  std::vector<std::string> embed_origins;  // parse_embed_origin()
  std::size_t max_connections = 512;
  std::size_t max_live_clients = 64;
  LogOptions log;
};

// The command line of tt-server. Parsing it sets `options`, which must outlive it; their initial
// values are the defaults.
std::unique_ptr<CLI::App> make_server_app(ServerOptions& options);

// Parses the arguments and the environment. On error returns the exit code: 0 after --help and
// --version, 2 for invalid usage; the output has already been printed. An API key is
// overwritten in argv and removed from the environment, so that neither the process list nor
// child processes contain it.
std::expected<ServerOptions, int> parse_server_options(int argc, char** argv,
                                                       const Installation& installation);

}  // namespace tt
