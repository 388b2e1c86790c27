#include "cli/options/tracer_options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>

namespace tt {

namespace {

struct LongName {
  std::string_view llama, ours;
};
constexpr std::array kLongNames = {
    LongName{"-ub", "--ubatch-size"},   LongName{"-tb", "--threads-batch"},
    LongName{"-fa", "--flash-attn"},    LongName{"-ctk", "--cache-type-k"},
    LongName{"-ctv", "--cache-type-v"}, LongName{"-ngl", "--n-gpu-layers"},
};

const std::vector<std::string> kCacheTypes = {"f32",  "f16",  "bf16", "q8_0",  "q5_1",
                                              "q5_0", "q4_1", "q4_0", "iq4_nl"};

// host:port, as llama.cpp's RPC backend wants it.
std::string endpoint_complaint(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  const bool sound =
      colon != std::string::npos && colon > 0 && colon + 1 < endpoint.size() &&
      std::all_of(endpoint.begin() + static_cast<std::ptrdiff_t>(colon) + 1, endpoint.end(),
                  [](unsigned char c) { return std::isdigit(c) != 0; });
  return sound ? "" : "'" + endpoint + "' is not host:port";
}

}  // namespace

void add_model_options(CLI::App& app, ModelOptions& model) {
  app.add_option("-m,--model", model.path, "GGUF file to load (default: the small bundled model)")
      ->type_name("FILE");
  app.add_option("--n-gpu-layers,--gpu-layers", model.gpu_layers,
                 "-ngl: layers to run on a GPU, if llama.cpp has a backend for it")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--mmap,!--no-mmap", model.mmap,
               "Map the model's file (default); else read it into memory");
  app.add_flag("--mlock,!--no-mlock", model.mlock, "Keep the model in RAM, never paged out");
  app.add_flag("--repack,!--no-repack", model.repack,
               "Rewrite weights for faster kernels at load (default); off: every weight is read "
               "from the file mapping");
  app.add_option("--rpc", model.rpc_servers, "Run layers on llama.cpp RPC servers, host:port,...")
      ->delimiter(',')
      ->check(CLI::Validator(&endpoint_complaint, "HOST:PORT"))
      ->type_name("");
}

void add_context_options(CLI::App& app, ContextOptions& context) {
  app.add_option("-c,--ctx-size", context.context, "Tokens that fit; 0: as the model was trained")
      ->capture_default_str();
  app.add_option("-b,--batch-size", context.batch, "Most tokens given to llama.cpp at a time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--ubatch-size", context.ubatch,
                 "-ub: most tokens of one step, that is of one evaluation of a graph")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("-t,--threads", context.threads, "Threads that compute; 0: one per core")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--threads-batch", context.threads_batch,
                 "-tb: threads for prompts; 0: as --threads")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--flash-attn",
         [&context](const std::string& word) {
           context.flash_attention = word == "on"    ? FlashAttention::On
                                     : word == "off" ? FlashAttention::Off
                                                     : FlashAttention::Auto;
         },
         "-fa: flash attention (default: auto)")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->type_name("");
  app.add_option("--cache-type-k", context.cache_type_k, "-ctk: type of the K cache")
      ->check(CLI::IsMember(kCacheTypes))
      ->type_name("")
      ->capture_default_str();
  app.add_option("--cache-type-v", context.cache_type_v, "-ctv: type of the V cache")
      ->check(CLI::IsMember(kCacheTypes))
      ->type_name("")
      ->capture_default_str();
}

void name_environment(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    std::string name = option->get_lnames().front();
    if (name == "help" || name == "version") continue;
    std::ranges::transform(name, name.begin(), [](unsigned char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(c));
    });
    option->envname("TT_" + name);
  }
}

std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> out(argv + std::min(argc, 1), argv + argc);
  for (std::string& argument : out) {
    if (argument == "--") break;
    const auto* known = std::ranges::find(kLongNames, std::string_view(argument), &LongName::llama);
    if (known != kLongNames.end()) argument = known->ours;
  }
  return out;
}

std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments) {
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return failed->get_name() + ": " + error.what() + "\nRun with --help for more information.\n";
  });
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& stop) {
    return app.exit(stop) == 0 ? 0 : 2;
  }
  return std::nullopt;
}

}  // namespace tt
