#include "program/tracer_options.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "program/validators.h"
#include "tracer/format/file/input_file.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

const std::vector<std::string> kCacheTypes = {"f32",  "f16",  "bf16", "q8_0",  "q5_1",
                                              "q5_0", "q4_1", "q4_0", "iq4_nl"};

constexpr std::string_view kAuto = "auto";

// Validates REGEX=BUFFER; the regex can contain "=". Whether the buffer exists is known at load.
std::string override_error(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return "must be REGEX=BUFFER, not '" + text + "'";
  try {
    const std::regex pattern(text.substr(0, equals));
  } catch (const std::regex_error&) {
    return "has an invalid regular expression: '" + text.substr(0, equals) +
           "'. An example of REGEX=BUFFER: ffn_.*_exps=CPU";
  }
  return "";
}

// A size, or "auto". A number without a unit is a number of bytes; a few of them are a mistake.
CLI::Validator memory_size() {
  return CLI::Validator(
      [](std::string& text) {
        if (text == kAuto) return std::string();
        const std::string given = text;
        std::string error = size_in_bytes()(text);
        constexpr std::size_t kFewDigits = 4;
        if (error.empty() && text == "0") return std::string("must be above 0");
        if (error.empty() && text == given && text.size() <= kFewDigits)
          return std::format("is {0} bytes. Write it with a unit, such as {0}GiB", text);
        return error;
      },
      "");
}

constexpr std::uint64_t kMaxTemplateBytes = 1U << 20;

// Refuses the names of the templates that llama-server has built in, which are not Jinja, except
// chatml. A text without a block or an expression is no template. Empty: valid.
std::string template_error(const std::string& text) {
  if (text == kChatMlName || text.contains("{{") || text.contains("{%")) return "";
  return "must be a Jinja template or chatml, not '" + text +
         "'. llama-server's other built-in templates are not Jinja: give the template of the model "
         "with --chat-template-file";
}

// A number of layers, or "all".
CLI::Validator layer_count() {
  return CLI::Validator(
      [](std::string& text) {
        if (text == "all") text = std::to_string(kMaxInt32);
        const std::string error = whole_number(0, kMaxInt32)(text);
        return error.empty() ? "" : error + ", or all";
      },
      "");
}

// Validates host:port, the format of llama.cpp's RPC backend. Empty: valid.
std::string endpoint_error(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  const bool valid = colon != std::string::npos && colon > 0 &&
                     parse_number<std::uint16_t>(endpoint.substr(colon + 1)).value_or(0) > 0;
  return valid ? "" : "must be host:port, not '" + endpoint + "'";
}

}  // namespace

std::filesystem::path default_machine_folder() {
  const char* name = "tensor-trace";
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::filesystem::path(cache) / name;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return {};
  return std::filesystem::path(home) / ".cache" / name;
}

void add_model_options(CLI::App& app, ModelOptions& model) {
  model.machine_folder = default_machine_folder();
  app.add_option("-m,--model", model.path, "GGUF file to load (default: the small bundled model)")
      ->check(file_name())
      ->type_name("FILE");
  app.add_option("--n-gpu-layers,--gpu-layers", model.gpu_layers,
                 "Number of layers to run on a GPU, or all, if llama.cpp has a GPU backend (also "
                 "-ngl)")
      ->transform(layer_count())
      ->capture_default_str();
  app.add_flag("--mmap,!--no-mmap", model.mmap,
               "Map the model file into memory (default), or read it into a buffer (--no-mmap)");
  app.add_flag("--mlock,!--no-mlock", model.mlock,
               "Lock the model in RAM so that it is not paged out");
  app.add_option_function<std::string>(
         "--load-mode",
         [&model](const std::string& mode) {
           model.mmap = mode == "auto" || mode == "mmap" || mode == "mmap+mlock";
           model.mlock = mode == "mlock" || mode == "mmap+mlock";
           model.direct_io = mode == "dio";
         },
         "How llama.cpp loads the weights, instead of --mmap and --mlock: auto (mmap), none (read "
         "into a buffer), mmap, mlock, mmap+mlock or dio (direct I/O; also -lm)")
      ->transform(one_of({"auto", "none", "mmap", "mlock", "mmap+mlock", "dio"}))
      ->type_name("MODE")
      ->default_str("auto")
      ->excludes(app.get_option("--mmap"))
      ->excludes(app.get_option("--mlock"));
  app.add_option_function<std::string>(
         "--lazy-mode",
         [&model](const std::string& mode) {
           model.lazy_mode = mode == "on"    ? LazyMode::On
                             : mode == "off" ? LazyMode::Off
                                             : LazyMode::Auto;
         },
         "Read rows of tensors that the architecture marks, such as embeddings per layer, when "
         "they "
         "are used: on, off, or auto (only tensors above 4 GiB; also -lzm)")
      ->transform(one_of({"on", "off", "auto"}))
      ->type_name("MODE")
      ->default_str("auto");
  app.add_option("--override-tensor", model.tensor_overrides,
                 "Memory for the tensors whose names match, REGEX=BUFFER,... such as "
                 "exps=CPU (also -ot)")
      ->delimiter(',')
      ->check(CLI::Validator(&override_error, ""))
      ->type_name("REGEX=BUFFER");
  app.add_flag("--jinja", "For command lines of llama-server: templates are always rendered");
  auto* jinja = app.add_option("--chat-template", model.chat_template,
                               "Jinja template for conversations, instead of the model's; chatml: "
                               "that of models that have none")
                    ->check(CLI::Validator(&template_error, ""))
                    ->type_name("TEXT");
  app.add_option_function<std::string>(
         "--chat-template-file",
         [&model](const std::string& path) {
           auto text = read_input(path, kMaxTemplateBytes);
           const std::string error = !text           ? text.error().message
                                     : text->empty() ? path + " is empty"
                                                     : "";
           if (!error.empty()) {
             throw CLI::ValidationError("--chat-template-file",
                                        error + ". Give a file with a Jinja template");
           }
           model.chat_template = *std::move(text);
         },
         "File with such a template")
      ->type_name("FILE")
      ->excludes(jinja);
  auto* cpu_moe = app.add_flag_callback(
      "--cpu-moe", [&model] { model.cpu_moe_layers = INT32_MAX; },
      "With GPU layers: keep the experts of all layers on the CPU (also -cmoe)");
  app.add_option("--n-cpu-moe", model.cpu_moe_layers,
                 "With GPU layers: keep the experts of the first N layers on the CPU (also -ncmoe)")
      ->check(whole_number(0, kMaxInt32))
      ->excludes(cpu_moe);
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
  app.add_option("--access-pattern", model.access_pattern,
                 "With --memory-budget: read the weights in this order until the first step has "
                 "shown it (access_pattern.json of `tt pattern`)")
      ->type_name("FILE");
  app.add_option("--rpc", model.rpc_servers,
                 "llama.cpp RPC servers to run layers on, host:port,...")
      ->delimiter(',')
      ->check(CLI::Validator(&endpoint_error, ""))
      ->type_name("HOST:PORT");
}

void add_context_options(CLI::App& app, ContextOptions& context) {
  app.add_option("-c,--ctx-size", context.context,
                 "Context size in tokens, rounded up to a multiple of 256; 0: the model's "
                 "training context, which is also the maximum of the default")
      ->check(whole_number(0, kMaxContext))
      ->default_str(std::to_string(ContextOptions::kDefaultContextTokens));
  app.add_option("-b,--batch-size", context.batch, "Maximum number of tokens per llama.cpp batch")
      ->check(whole_number(1, kMaxContext))
      ->capture_default_str();
  app.add_option("--ubatch-size", context.ubatch,
                 "Maximum number of tokens per step, which is one graph evaluation (also -ub)")
      ->check(whole_number(1, kMaxContext))
      ->capture_default_str();
  app.add_option("-t,--threads", context.threads,
                 "Number of compute threads; 0: one per processor that the program may use")
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
         "Flash attention (also -fa)")
      ->transform(one_of({"on", "off", "auto"}))
      ->type_name("on|off|auto")
      ->default_str("auto");
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
  app.add_flag(
      "--swa-full", context.swa_full,
      "KV cache of layers with a sliding window: cells for the whole context (default: for "
      "the window and one step)");
  app.add_option("--moe-cache-mib", context.moe_cache_mib,
                 "With GPU layers: GPU cache in MiB for the experts that are kept on the CPU")
      ->check(whole_number(0, 1 << 20))
      ->capture_default_str();
}

}  // namespace tt
