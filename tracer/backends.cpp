#include "tracer/backends.h"

#include <ggml-backend.h>
#include <llama.h>

#include <array>
#include <format>
#include <utility>

namespace tt {

namespace {

// llama.cpp's logger is global, so its sink has to be.
std::function<void(std::string_view)>& log_sink() {
  static std::function<void(std::string_view)> sink;
  return sink;
}

void forward_log(ggml_log_level level, const char* text, void*) {
  if (level != GGML_LOG_LEVEL_WARN && level != GGML_LOG_LEVEL_ERROR) return;
  if (log_sink()) log_sink()(text);
}

constexpr std::array kTested = {std::pair{"0.7.0", "0.27.0"}};

}  // namespace

void load_backends(std::function<void(std::string_view)> log) {
  log_sink() = std::move(log);
  llama_log_set(&forward_log, nullptr);
  llama_backend_init();
  ggml_backend_load_all();
  if (ggml_backend_reg_t blas = ggml_backend_reg_by_name("BLAS"); blas != nullptr) {
    ggml_backend_unload(blas);
  }
}

std::expected<void, std::string> add_rpc_servers(const std::vector<std::string>& servers) {
  if (servers.empty()) return {};
  ggml_backend_reg_t rpc = ggml_backend_reg_by_name("RPC");
  if (rpc == nullptr) {
    return std::unexpected("This llama.cpp has no RPC backend. Install libggml0-backend-rpc.");
  }
  using AddServer = ggml_backend_reg_t (*)(const char*);
  const auto add = reinterpret_cast<AddServer>(
      ggml_backend_reg_get_proc_address(rpc, "ggml_backend_rpc_add_server"));
  for (const std::string& server : servers) {
    ggml_backend_reg_t devices = add == nullptr ? nullptr : add(server.c_str());
    if (devices == nullptr) {
      return std::unexpected(std::format(
          "No RPC server answers at {}. Start one there with ggml-rpc-server.", server));
    }
    ggml_backend_register(devices);
  }
  return {};
}

LibraryVersions library_versions() {
  LibraryVersions versions{.llama = llama_version(),
                           .ggml = ggml_version(),
                           .ggml_commit = ggml_commit(),
                           .tested = false,
                           .tested_with = {}};
  for (const auto& [llama, ggml] : kTested) {
    versions.tested = versions.tested || (versions.llama == llama && versions.ggml == ggml);
    versions.tested_with += std::format("{}llama {} with ggml {}",
                                        versions.tested_with.empty() ? "" : ", ", llama, ggml);
  }
  return versions;
}

}  // namespace tt
