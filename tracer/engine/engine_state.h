// What an Engine holds. Private to engine.cpp, generation_run.cpp and session_facts.cpp.
#pragma once

#include <optional>
#include <vector>

#include "tracer/engine/engine.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/gguf/mapped_files.h"
#include "tracer/probe/probe.h"

namespace tt {

struct Engine::Impl {
  ModelOptions model_options;
  std::string repacking_fault;  // why weights are not repacked though that was asked for
  ContextOptions context_options;
  ModelFacts facts;
  GgufIndex index;
  LlamaModel model;
  std::optional<ModelLayout> layout;
  std::unique_ptr<Probe> probe;
  LlamaContext context;  // after the probe: it calls into it
  std::vector<std::pair<std::string, std::string>> host;
  // Tokens that are no text of an answer, and those that end one; ascending.
  std::vector<std::int32_t> control, ending;
  std::vector<std::int32_t> cached;  // tokens whose state the context's memory holds
  std::string cached_by;             // session that left them; empty: it was not recorded

  std::expected<void, EngineError> make_context();
  void read_facts();
  void read_vocabulary();
  // A token's bytes, "" without vocabulary. `special`: also of control tokens,
  // which belong to the record but not to the answer.
  std::string piece(std::int32_t token, bool special = true) const;
  const llama_vocab* vocab() const { return llama_model_get_vocab(model.get()); }
};

}  // namespace tt
