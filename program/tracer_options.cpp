#include "program/tracer_options.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/validators.h"

namespace tt {

namespace {

const std::vector<std::string> kCacheTypes = {"f32",  "f16",  "bf16", "q8_0",  "q5_1",
                                              "q5_0", "q4_1", "q4_0", "iq4_nl"};

constexpr std::string_view kAuto = "auto";

// A size above zero, or "auto".
CLI::Validator memory_size() {
  return CLI::Validator(
      [](std::string& text) {
        if (text == kAuto) return std::string();
        std::string error = size_in_bytes()(text);
        if (error.empty() && text == "0") error = "must be above 0";
        return error;
      },
      "");
}

// Validates host:port, the format of llama.cpp's RPC backend. Empty: valid.
std::string endpoint_error(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  const char* end = endpoint.data() + endpoint.size();
  std::uint16_t port = 0;
  const bool valid = colon != std::string::npos && colon > 0 && endpoint[colon + 1] != '-' &&
                     std::from_chars(endpoint.data() + colon + 1, end, port).ptr == end && port > 0;
  return valid ? "" : "must be host:port, not '" + endpoint + "'";
}

}  // namespace

void add_model_options(CLI::App& app, ModelOptions& model) {
  app.add_option("-m,--model", model.path, "GGUF file to load (default: the small bundled model)")
      ->type_name("FILE");
  app.add_option("--n-gpu-layers,--gpu-layers", model.gpu_layers,
                 "Number of layers to run on a GPU, if llama.cpp has a GPU backend (also -ngl)")
      ->check(whole_number(0, kMaxInt32))
      ->capture_default_str();
  app.add_flag("--mmap,!--no-mmap", model.mmap,
               "Map the model file into memory (default), or read it into a buffer (--no-mmap)");
  app.add_flag("--mlock,!--no-mlock", model.mlock,
               "Lock the model in RAM so that it is not paged out");
  app.add_flag(
      "--repack,!--no-repack", model.repack,
      "Convert weights at load to a layout for faster kernels (default), or read every weight "
      "from the mapped file (--no-repack, also -nr)");
  app.add_option_function<std::string>(
         "--memory-budget",
         [&model](const std::string& text) {
           model.memory.budget = text == kAuto ? MemoryOptions::kAuto : std::stoull(text);
         },
         "Memory for the weights of a model that is larger: 450MiB, 6GiB, or auto (what the memory "
         "limit leaves). Switches repacking off (default: none; docs/memory.md)")
      ->transform(memory_size())
      ->type_name("SIZE");
  app.add_flag("--pin,!--no-pin", model.memory.pin,
               "With --memory-budget: keep the same part of the weights in memory (default)");
  app.add_flag("--prefetch,!--no-prefetch", model.memory.prefetch,
               "With --memory-budget: read the other weights before they are needed (default)");
  app.add_option("--rpc", model.rpc_servers,
                 "llama.cpp RPC servers to run layers on, host:port,...")
      ->delimiter(',')
      ->check(CLI::Validator(&endpoint_error, ""))
      ->type_name("HOST:PORT");
}

void add_context_options(CLI::App& app, ContextOptions& context) {
  app.add_option("-c,--ctx-size", context.context,
                 "Context size in tokens, rounded up to a multiple of 256; 0: the model's "
                 "training context")
      ->check(whole_number(0, kMaxContext))
      ->capture_default_str();
  app.add_option("-b,--batch-size", context.batch, "Maximum number of tokens per llama.cpp batch")
      ->check(whole_number(1, kMaxContext))
      ->capture_default_str();
  app.add_option("--ubatch-size", context.ubatch,
                 "Maximum number of tokens per step, which is one graph evaluation (also -ub)")
      ->check(whole_number(1, kMaxContext))
      ->capture_default_str();
  app.add_option("-t,--threads", context.threads, "Number of compute threads; 0: one per core")
      ->check(whole_number(0, kMaxThreads))
      ->capture_default_str();
  app.add_option("--threads-batch", context.threads_batch,
                 "Number of threads for prompts; 0: same as --threads (also -tb)")
      ->check(whole_number(0, kMaxThreads))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--flash-attn",
         [&context](const std::string& word) {
           context.flash_attention = word == "on"    ? FlashAttention::On
                                     : word == "off" ? FlashAttention::Off
                                                     : FlashAttention::Auto;
         },
         "Flash attention (default: auto; also -fa)")
      ->transform(one_of({"on", "off", "auto"}))
      ->type_name("on|off|auto");
  app.add_option("--cache-type-k", context.cache_type_k,
                 "Data type of the K cache (also -ctk): " + CLI::detail::join(kCacheTypes, ", "))
      ->transform(one_of(kCacheTypes))
      ->type_name("TYPE")
      ->capture_default_str();
  app.add_option("--cache-type-v", context.cache_type_v,
                 "Data type of the V cache (also -ctv): as for the K cache")
      ->transform(one_of(kCacheTypes))
      ->type_name("TYPE")
      ->capture_default_str();
}

}  // namespace tt
