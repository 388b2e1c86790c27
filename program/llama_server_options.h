// The options of llama-server, with its defaults, and where tensor-trace differs. The table of
// docs/defaults.md and the messages about options that no program here has are made from it; a test
// compares it with `llama-server --help` and with the options of tt-server and tt record.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tt {

struct LlamaServerOption {
  enum class Group : std::uint8_t { Context, Sampling, Other };  // Context: also the model
  std::string_view names;       // all spellings, as in its --help: "-c, --ctx-size"
  std::string_view value = "";  // its default, as in its --help; empty: not stated
  Group group = Group::Other;
  std::string_view reason = "";   // why the default differs here
  std::string_view instead = "";  // of an option that no program here has: what to do

  bool has_name(std::string_view name) const;
  std::string_view long_name() const;  // "--ctx-size"
};

std::span<const LlamaServerOption> llama_server_options();
// Null: llama-server has no such option.
const LlamaServerOption* llama_server_option(std::string_view name);

}  // namespace tt
