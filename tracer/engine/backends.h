// llama.cpp's backends, loaded once per process, and the library's version gate.
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tt {

// What llama.cpp says, from any thread.
enum class LibraryLine { Debug, Info, Warning, Error };
using LibraryLog = std::function<void(LibraryLine, std::string_view)>;

// Loads the backends that can be timed per op, and leaves out those that cannot
// (BLAS runs whole matrix multiplications as one split). Call from main, once,
// before any model is loaded. `log` may be empty.
void load_backends(LibraryLog log);

// While one lives, what llama.cpp says on this thread after `stopped` has become true is told
// as Debug: that a graph which it was told to stop has not been computed is no error.
class StopIsNoError {
 public:
  explicit StopIsNoError(std::function<bool()> stopped);
  ~StopIsNoError();
  StopIsNoError(const StopIsNoError&) = delete;
  StopIsNoError& operator=(const StopIsNoError&) = delete;
};

// Adds the devices of llama.cpp RPC servers ("host:port"). The error says which failed.
std::expected<void, std::string> add_rpc_servers(const std::vector<std::string>& servers);

class GgufIndex;

// Why this machine's llama.cpp cannot run `model` with repacked weights; empty: it can. With
// AMX buffers, making a context aborts inside ggml when the model has the three-dimensional
// weights of MLA (seen with the tested versions). After load_backends().
std::string repacking_fault(const GgufIndex& model);

// Their names, "CPU" among them.
std::vector<std::string> backend_names();
// The devices that layers can be given to (-ngl), RPC servers among them. After
// load_backends() and add_rpc_servers().
std::vector<std::string> offload_devices();

struct LibraryVersions {
  std::string llama, ggml, ggml_commit;
  bool tested = false;      // the probe's tests ran with exactly these
  std::string tested_with;  // for people: "llama 0.7.0 with ggml 0.27.0"
};
LibraryVersions library_versions();

}  // namespace tt
