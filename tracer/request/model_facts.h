// Properties of a loaded model: a value.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tt {

struct ModelFacts {
  std::string name, description, architecture;
  std::uint64_t size = 0;  // bytes of weights
  std::uint32_t n_layers = 0, n_embd = 0, n_heads = 0, n_heads_kv = 0, n_vocab = 0;
  std::uint32_t n_experts = 0, n_experts_used = 0;
  std::uint32_t context = 0;  // context size in tokens
  std::uint32_t context_trained = 0;
  std::uint32_t ubatch = 0;
  std::uint32_t graph_nodes = 0;  // of the largest graph, views included; 0: unknown
  std::int32_t threads = 0;
  bool has_vocabulary = false;
  bool has_chat_template = false;  // its own, or that of an option, which works
  bool can_chat = false;           // conversations can be rendered, if not with these, as ChatML
  bool has_encoder = false;        // encoder-decoder (T5)
  bool embedding_only = false;     // no generation (BERT)
  bool recurrent = false, hybrid = false;
  // Context and load as in a session's metadata: "context.size", "context.flash_attention"...
  std::vector<std::pair<std::string, std::string>> settings;
  std::string mlock_error;  // why mlock failed although it was requested; empty: no failure
  // What the load did not do as requested: one sentence or more each, for the user.
  std::vector<std::string> warnings;
  std::string context_warning;  // the same, of a context with another size than requested
};

}  // namespace tt
