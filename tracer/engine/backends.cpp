#include "tracer/engine/backends.h"

#include <dlfcn.h>
#include <ggml-backend.h>
#include <llama.h>
#include <netdb.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <format>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "tracer/engine/repack_samples.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

// Global, because llama.cpp's logger is global.
LibraryLog& log_sink() {
  static LibraryLog sink;
  return sink;
}

thread_local std::function<bool()> log_downgrade_active;
thread_local LibraryMessages* library_messages = nullptr;

// Drops continuations of a line (progress dots).
void forward_log(ggml_log_level level, const char* text, void*) {
  if (library_messages != nullptr) {
    if (level == GGML_LOG_LEVEL_ERROR) library_messages->add_error(text);
    if (level == GGML_LOG_LEVEL_INFO) library_messages->add_info(text);
    if (library_messages->hides()) return;
  }
  if (!log_sink()) return;
  if (log_downgrade_active && log_downgrade_active()) level = GGML_LOG_LEVEL_DEBUG;
  switch (level) {
    case GGML_LOG_LEVEL_DEBUG:
      return log_sink()(LibraryLine::Debug, text);
    case GGML_LOG_LEVEL_INFO:
      return log_sink()(LibraryLine::Info, text);
    case GGML_LOG_LEVEL_WARN:
      return log_sink()(LibraryLine::Warning, text);
    case GGML_LOG_LEVEL_ERROR:
      return log_sink()(LibraryLine::Error, text);
    case GGML_LOG_LEVEL_NONE:
    case GGML_LOG_LEVEL_CONT:
      return;
  }
}

// Whether "host:port" accepts connections. The library aborts the process if it does not.
bool can_connect(const std::string& server) {
  constexpr int kTimeoutMs = 3000;
  const std::size_t colon = server.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == server.size()) return false;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(server.substr(0, colon).c_str(), server.c_str() + colon + 1, &hints, &found) !=
      0) {
    return false;
  }
  bool connected = false;
  for (const addrinfo* each = found; each != nullptr && !connected; each = each->ai_next) {
    const int peer = ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (peer < 0) continue;
    int failed = ::connect(peer, each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (failed == EINPROGRESS) {
      pollfd waiting{.fd = peer, .events = POLLOUT, .revents = 0};
      socklen_t size = sizeof failed;
      if (::poll(&waiting, 1, kTimeoutMs) == 1) {
        ::getsockopt(peer, SOL_SOCKET, SO_ERROR, &failed, &size);
      }
    }
    connected = failed == 0;
    ::close(peer);
  }
  ::freeaddrinfo(found);
  return connected;
}

bool find_amx_buffers() {
  return std::ranges::any_of(repacked_buffer_types(), [](ggml_backend_buffer_type_t type) {
    return std::string_view(ggml_backend_buft_name(type)) == "AMX";
  });
}

// Queried once: the library's lazy initialization of the list is not thread-safe.
bool has_amx_buffers() {
  static const bool has = find_amx_buffers();
  return has;
}

bool is_registered(ggml_backend_reg_t backend) {
  for (std::size_t i = 0; i < ggml_backend_reg_count(); ++i)
    if (ggml_backend_reg_get(i) == backend) return true;
  return false;
}

// The folder of the backends beside the libggml that is loaded, as Debian installs them:
// ggml/backends0 beside libggml.so.0. Empty: there is none. libggml itself looks in the folder that
// it was built for, where a relocated one (package/) would find the backends of another version.
std::string backend_folder() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&ggml_backend_load_all), &library) == 0) return {};
  const std::filesystem::path path = library.dli_fname;
  constexpr std::string_view kName = "libggml.so.";
  const std::string name = path.filename();
  if (!name.starts_with(kName)) return {};
  const std::string version =
      name.substr(kName.size(), name.find('.', kName.size()) - kName.size());
  const std::filesystem::path folder = path.parent_path() / "ggml" / ("backends" + version);
  std::error_code none;
  return std::filesystem::is_directory(folder, none) ? folder.string() : std::string();
}

constexpr std::array kTestedVersions = {std::pair{"0.7.0", "0.27.0"}};

}  // namespace

LibraryMessages::LibraryMessages(Log log)
    : log_(log), outer_(std::exchange(library_messages, this)) {}

LibraryMessages::~LibraryMessages() { library_messages = outer_; }

void LibraryMessages::add_error(std::string_view line) {
  if (first_error_.empty()) first_error_ = cause_of(line);
}

// "sched_reserve: graph: nodes = 195, splits = 1", in older versions "graph nodes  = 195".
void LibraryMessages::add_info(std::string_view line) {
  for (const std::string_view name : {"graph: nodes", "graph nodes"}) {
    const std::size_t at = line.find(name);
    const std::size_t digit =
        at == std::string_view::npos ? at : line.find_first_not_of(" =", at + name.size());
    if (digit != std::string_view::npos)
      std::from_chars(line.data() + digit, line.data() + line.size(), graph_nodes_);
  }
}

// "llama_model_load: error loading model: check_tensor_dims: tensor ..." names two functions.
std::string cause_of(std::string_view line) {
  constexpr std::size_t kMaxBytes = 500;
  constexpr std::string_view kGeneral = "error loading model: ";
  line = line.substr(0, line.find_last_not_of("\r\n ") + 1);
  for (std::size_t colon = 0; (colon = line.find(": ")) != std::string_view::npos;) {
    const bool is_function = std::ranges::all_of(line.substr(0, colon), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == ':' || c == '~';
    });
    if (!is_function && !line.starts_with(kGeneral)) break;
    line.remove_prefix(colon + 2);
  }
  return std::string(line.substr(0, kMaxBytes));
}

void log_library_line(LibraryLine kind, std::string_view line) {
  if (log_sink()) log_sink()(kind, line);
}

ScopedLogDowngrade::ScopedLogDowngrade(std::function<bool()> stopped) {
  log_downgrade_active = std::move(stopped);
}

ScopedLogDowngrade::~ScopedLogDowngrade() { log_downgrade_active = {}; }

void load_backends(LibraryLog log) {
  log_sink() = std::move(log);
  llama_log_set(&forward_log, nullptr);
  llama_backend_init();
  if (const std::string folder = backend_folder(); !folder.empty()) {
    ggml_backend_load_all_from_path(folder.c_str());
  } else {
    ggml_backend_load_all();
  }
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
    ggml_backend_reg_t devices =
        add == nullptr || !can_connect(server) ? nullptr : add(server.c_str());
    if (devices == nullptr) {
      return std::unexpected(std::format(
          "Cannot connect to an RPC server at {}. Start one there with ggml-rpc-server.", server));
    }
    // The library has one registry per server, also if it is added again.
    if (!is_registered(devices)) ggml_backend_register(devices);
  }
  return {};
}

std::string repacking_error(const GgufIndex& model) {
  if (!has_amx_buffers() || !std::ranges::any_of(model.tensors(), [](const GgufTensor& tensor) {
        return tensor.name.ends_with(".attn_k_b.weight") && tensor.ne[2] > 1;
      })) {
    return {};
  }
  return "this llama.cpp does not support MLA weights in AMX buffers";
}

namespace {

// A GGUF file without tensors whose metadata is general.architecture.
std::string file_of_architecture(const std::string& architecture) {
  std::string bytes = "GGUF";
  const auto number = [&](auto value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const auto text = [&](std::string_view value) {
    number(std::uint64_t{value.size()});
    bytes += value;
  };
  number(std::uint32_t{GGUF_VERSION});
  number(std::uint64_t{0});  // tensors
  number(std::uint64_t{1});  // entries of metadata
  text("general.architecture");
  number(std::uint32_t{GGUF_TYPE_STRING});
  text(architecture);
  return bytes;
}

bool ask_library(const std::string& architecture) {
  const std::string bytes = file_of_architecture(architecture);
  const int file = ::memfd_create("architecture", MFD_CLOEXEC);
  const std::string path = std::format("/proc/self/fd/{}", file);
  const bool is_written =
      file >= 0 && std::cmp_equal(::write(file, bytes.data(), bytes.size()), bytes.size());
  LibraryMessages said(LibraryMessages::Log::Hidden);
  if (is_written) {
    // Also in a program that has loaded no backends, or that has a log of its own.
    ggml_log_callback before = nullptr;
    void* data = nullptr;
    llama_log_get(&before, &data);
    llama_log_set(&forward_log, nullptr);
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    {
      const LlamaModel none(llama_model_load_from_file(path.c_str(), params));
    }
    llama_log_set(before, data);
  }
  if (file >= 0) ::close(file);
  if (!said.first_error().contains("unknown model architecture")) return true;
  log_library_line(LibraryLine::Error, "error loading model: " + said.first_error() + "\n");
  return false;
}

}  // namespace

bool knows_architecture(const std::string& architecture) {
  constexpr std::size_t kMaxBytes = 100, kMaxKept = 1000;
  if (architecture.size() > kMaxBytes) return false;
  static std::mutex mutex;
  static std::map<std::string, bool, std::less<>> known;
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(architecture); found != known.end()) return found->second;
  if (known.size() >= kMaxKept) known.clear();
  return known[architecture] = ask_library(architecture);
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  names.reserve(ggml_backend_reg_count());
  for (std::size_t i = 0; i < ggml_backend_reg_count(); ++i)
    names.emplace_back(ggml_backend_reg_name(ggml_backend_reg_get(i)));
  return names;
}

std::vector<std::string> offload_devices() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    const auto type = ggml_backend_dev_type(device);
    if (type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU)
      names.emplace_back(ggml_backend_dev_name(device));
  }
  return names;
}

LibraryVersions library_versions() {
  LibraryVersions versions{.llama = llama_version(),
                           .ggml = ggml_version(),
                           .ggml_commit = ggml_commit(),
                           .tested = false,
                           .tested_with = {}};
  for (const auto& [llama, ggml] : kTestedVersions)
    versions.tested = versions.tested || (versions.llama == llama && versions.ggml == ggml);
  versions.tested_with = join(kTestedVersions, [](const auto& tested) {
    return std::format("llama {} with ggml {}", tested.first, tested.second);
  });
  return versions;
}

}  // namespace tt
