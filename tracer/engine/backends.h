// Loads llama.cpp's backends, once per process, and checks the version of the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tt {

// llama.cpp's log messages, from any thread.
enum class LibraryLine { Debug, Info, Warning, Error };
using LibraryLog = std::function<void(LibraryLine, std::string_view)>;

// Loads the backends, except those that cannot be timed per op (BLAS runs matrix
// multiplications as one split). Call once, from main, before any model is loaded. `log`
// may be empty.
void load_backends(LibraryLog log);

// During its lifetime, log messages of llama.cpp on this thread have level Debug once `stopped`
// returns true: an error about a graph that was cancelled on purpose is not an error.
class ScopedLogDowngrade {
 public:
  explicit ScopedLogDowngrade(std::function<bool()> stopped);
  ~ScopedLogDowngrade();
  ScopedLogDowngrade(const ScopedLogDowngrade&) = delete;
  ScopedLogDowngrade& operator=(const ScopedLogDowngrade&) = delete;
};

// Collects what only the messages of llama.cpp say, on this thread during its lifetime. They are
// logged, too, unless they are `Hidden`. May be nested; the innermost one collects.
class LibraryMessages {
 public:
  enum class Log : std::uint8_t { Shown, Hidden };
  explicit LibraryMessages(Log log = Log::Shown);
  ~LibraryMessages();
  LibraryMessages(const LibraryMessages&) = delete;
  LibraryMessages& operator=(const LibraryMessages&) = delete;

  // cause_of() it; empty: none.
  const std::string& first_error() const { return first_error_; }
  // Of the graph that a context reserves memory for, the largest that it evaluates, views included;
  // 0: unknown.
  std::uint32_t graph_nodes() const { return graph_nodes_; }

  // For the library's log callback.
  void add_error(std::string_view line);
  void add_info(std::string_view line);
  bool hides() const { return log_ == Log::Hidden; }

 private:
  const Log log_;
  std::string first_error_;
  std::uint32_t graph_nodes_ = 0;
  LibraryMessages* const outer_;
};

// The message in an error line of the library: without the names of its functions, at most 500
// bytes. The first error of a load names the cause; later ones only say that it failed.
std::string cause_of(std::string_view line);

// Writes a line of another process (a model check) to the log given to load_backends().
void log_library_line(LibraryLine kind, std::string_view line);

// Adds the devices of llama.cpp RPC servers ("host:port") that were not added before. The error
// names the failed server.
std::expected<void, std::string> add_rpc_servers(const std::vector<std::string>& servers);

class GgufIndex;

// Why this machine's llama.cpp cannot run `model` with repacked weights; empty: it can. With AMX
// buffers, creating a context aborts inside ggml if the model has three-dimensional MLA weights
// (observed with the tested versions). Call after load_backends().
std::string repacking_error(const GgufIndex& model);

// Names of the loaded backends, including "CPU".
std::vector<std::string> backend_names();
// Devices to which layers can be offloaded (-ngl), including RPC servers. Call after
// load_backends() and add_rpc_servers().
std::vector<std::string> offload_devices();

// Whether this llama.cpp knows the architecture (general.architecture). Asks the library, once per
// name and process: it tries to load a file that contains nothing but the name. Its error about an
// unknown name goes to the log. Any thread.
bool knows_architecture(const std::string& architecture);

struct LibraryVersions {
  std::string llama, ggml, ggml_commit;
  bool tested = false;      // tensor-trace was tested with exactly these
  std::string tested_with;  // for the user: "llama 0.7.0 with ggml 0.27.0"
};
LibraryVersions library_versions();

}  // namespace tt
