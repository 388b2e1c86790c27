// A loaded model with its context and probe: runs one generation at a time.
//
// load() and generate() run on one thread (the inference thread); facts() and
// the text functions are read-only and may be called from any thread once
// loaded; cancel() from any thread at any time.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"
#include "tracer/probe/probe.h"
#include "tracer/request/generation.h"
#include "tracer/request/model_facts.h"
#include "tracer/request/model_options.h"

namespace tt {

class Recorder;

struct EngineError {
  enum class Kind {
    NotFound,
    NotAModel,
    Unsupported,
    OutOfMemory,
    Cancelled,
    BadOption,
    EmptyPrompt,
    NoVocabulary,
    BadToken,
    TooLong,
    BadGrammar,
    BadTemplate,
    NoChatTemplate
  };
  Kind kind;
  std::string message;  // says what to do
};

// How much one step of this model may write: what a Recorder is made with.
struct RecorderSize {
  std::size_t max_ops = 0;
  std::size_t slot_bytes = 0;
};

// 0..1; return false to cancel. Called on the loading thread.
using LoadProgress = std::function<bool(float)>;

class Engine {
 public:
  static std::expected<std::unique_ptr<Engine>, EngineError> load(const ModelOptions& model,
                                                                  const ContextOptions& context,
                                                                  const LoadProgress& progress);
  ~Engine();

  const ModelFacts& facts() const;
  const GgufIndex& gguf() const;

  // The prompt as token ids, chat template applied. Checks what can be checked
  // without running: empty, too long, ids outside of the vocabulary.
  std::expected<std::vector<std::int32_t>, EngineError> tokens_of(const Prompt& prompt) const;
  // Everything of a request that can be told before it runs.
  std::expected<void, EngineError> check(const GenerationRequest& request) const;
  std::string piece(std::int32_t token) const;  // its bytes; may be half a character

  // Runs one request to its end, recording into `recorder` (null: level OFF).
  // What went wrong inside is in the result; what was recorded until then stays.
  GenerationResult generate(const GenerationRequest& request, Recorder* recorder,
                            GenerationListener& listener);
  void cancel();        // the running generate() stops after the op in flight
  void reset_cancel();  // before the next one

  const Probe& probe() const;
  RecorderSize recorder_size() const;
  // What a session of this model says about itself: model, host, libraries; and
  // how it ended.
  SessionInfo describe(const GenerationRequest& request) const;
  void complete(SessionInfo& info, const GenerationResult& result) const;

  struct Impl;  // engine_state.h

 private:
  explicit Engine(std::unique_ptr<Impl> impl);
  std::expected<std::string, EngineError> text_of(const Prompt& prompt) const;
  std::vector<std::int32_t> tokenize(const std::string& text) const;

  std::unique_ptr<Impl> impl_;
};

}  // namespace tt
