// State of an Engine. Private to tracer/engine and tracer/bench.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracer/engine/engine.h"
#include "tracer/engine/grammar.h"
#include "tracer/format/file/mapping_guard.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/gguf/mapped_files.h"
#include "tracer/memory/memory_manager.h"
#include "tracer/probe/probe.h"
#include "tracer/recorder/step_pool.h"
#include "tracer/sandbox/sandbox.h"
#include "tracer/text/chat_template.h"

namespace tt {

struct Engine::Impl {
  ModelOptions model_options;
  std::string repacking_error;  // why weights are not repacked although it was requested
  ContextOptions context_options;
  ModelFacts facts;
  GgufIndex index;
  LlamaModel model;
  std::optional<ModelLayout> layout;
  llama_context_params params{};  // of `context`, without callbacks
  std::unique_ptr<Probe> probe;
  std::unique_ptr<MappingGuard> guard;    // of the model's mapping; cancels the probe's graph
  LlamaContext context;                   // after the probe, because it calls the probe
  std::unique_ptr<MemoryManager> memory;  // after the model, whose mapping it uses
  std::unique_ptr<StepPool> unrecorded;   // observes steps that are not recorded, for `memory`
  std::vector<std::pair<std::string, std::string>> host;
  std::vector<std::pair<std::string, std::string>> load;  // what it cost (LoadRecord)
  // Control tokens, which have no text, and end-of-generation tokens; ascending.
  std::vector<std::int32_t> control_tokens, eog_tokens;
  std::vector<std::int32_t> cached_tokens;  // tokens in the context's memory (KV cache or state)
  std::string cached_session;               // session that computed them; empty: not recorded
  Sandbox* sandbox = nullptr;
  std::unique_ptr<Sandbox> vocabulary;  // evaluates grammars; its process starts at the first one
  std::string chat_template;            // empty: the model has no vocabulary
  bool own_chat_template = false;       // of the model or an option, not ChatML
  ChatTokens chat_tokens;
  std::string template_error;  // why the chat template cannot be used; empty: it can

  std::expected<void, EngineError> make_context();
  void read_facts();
  std::vector<std::pair<std::string, std::string>> settings() const;  // ModelFacts::settings
  void read_vocabulary();
  void read_chat_template();
  void make_memory_manager(std::optional<StoredPattern> given);
  StepBuffer* unrecorded_buffer();
  RecorderSize recorder_size() const;
  // Why the model cannot follow these settings, except the grammar; empty: it can.
  std::string sampling_error(const Sampling& sampling) const;
  // Parses a grammar in a child process.
  std::expected<std::unique_ptr<GrammarRun>, GrammarError> start_grammar(
      const std::string& grammar, const KeepGoing& keep_going = {}) const;
  // A token's bytes; empty without a vocabulary. `special`: also render control tokens, which are
  // recorded but are not part of the answer.
  std::string piece(std::int32_t token, bool special = true) const;
  const llama_vocab* vocab() const { return llama_model_get_vocab(model.get()); }
};

// Number of learned position embeddings, beyond which ggml aborts. UINT32_MAX: the positions are
// computed (RoPE).
std::uint32_t learned_positions(const GgufIndex& index);

}  // namespace tt
