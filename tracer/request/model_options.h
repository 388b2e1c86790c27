// Options for loading a model and creating its context, as values without llama.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/request/memory.h"

namespace tt {

enum class FlashAttention : std::uint8_t { Auto, On, Off };

// llama.cpp's llama_lazy_mode: whether rows of some large tensors are read when they are used.
enum class LazyMode : std::uint8_t { Off, Auto, On };

inline constexpr std::string_view kChatMlName = "chatml";

struct ModelOptions {
  std::filesystem::path path{};
  std::int32_t gpu_layers = 0;
  bool mmap = true;
  bool mlock = false;
  bool repack = true;                      // rewrite weights for faster kernels at load
  bool repack_samples = false;             // only samples (model_check.h)
  std::vector<std::string> rpc_servers{};  // host:port of llama.cpp RPC servers
  bool direct_io = false;                  // read the weights with direct I/O; not mapped
  LazyMode lazy_mode = LazyMode::Auto;
  std::vector<std::string> tensor_overrides{};  // "REGEX=BUFFER TYPE"; the first match counts
  std::int32_t cpu_moe_layers = 0;              // keep the experts of the first layers on the CPU
  // Jinja, instead of the model's; kChatMlName: that of models that have none; empty: the model's.
  std::string chat_template{};
  MemoryOptions memory{};
  // Folder for the order in which the weights are read, with a memory budget; it is used after the
  // next start. Empty: the order is learned again.
  std::filesystem::path pattern_folder{};
  // An access_pattern.json to use instead of the one in the folder. One of another model fails the
  // load. Empty: none.
  std::filesystem::path access_pattern{};
  // Folder in which what was measured of the machine is stored (tracer/engine/machine_rate.h), and
  // from which it is read. Empty: nothing is measured.
  std::filesystem::path machine_folder{};

  // Repacked weights are copies that cannot be dropped and read again, so a budget excludes them.
  bool repacks() const { return repack && memory.budget == MemoryOptions::kOff; }
};

inline constexpr std::uint32_t kMaxContext = 1U << 24;  // tokens; above any training context
inline constexpr std::int32_t kMaxThreads = 512;        // GGML_MAX_N_THREADS

struct ContextOptions {
  // A context of at most this size, and no larger than the model was trained with.
  static constexpr std::uint32_t kDefaultContextTokens = 4096;
  static constexpr std::uint32_t kDefaultContext = UINT32_MAX;
  // Tokens; 0: as trained; rounded up to a multiple of 256.
  std::uint32_t context = kDefaultContext;
  std::uint32_t batch = 2048;
  std::uint32_t ubatch = 512;      // maximum tokens per step
  std::int32_t threads = 0;        // 0: one per processor that the process may use
  std::int32_t threads_batch = 0;  // 0: same as threads
  FlashAttention flash_attention = FlashAttention::Auto;
  std::string cache_type_k = "f16";
  std::string cache_type_v = "f16";
  // Layers with a sliding window: cells for the whole context instead of the window and one step.
  bool swa_full = false;
  std::uint32_t moe_cache_mib = 0;  // device cache for experts kept on the CPU
};

}  // namespace tt
