// A loaded model with its context and probe: runs one generation at a time.
//
// Call load() and generate() on one thread (the inference thread). facts() and the text
// functions are read-only and may be called from any thread after load(); cancel() from any
// thread at any time.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"
#include "tracer/probe/probe.h"
#include "tracer/recorder/recording_options.h"
#include "tracer/request/generation.h"
#include "tracer/request/model_facts.h"
#include "tracer/request/model_options.h"

namespace tt {

class Debugger;
class Recorder;
class Sandbox;
struct StoredPattern;

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
    BadConversation,  // the chat template rejects it
    BadTemplate,      // the chat template exceeds a limit
    NoChatTemplate,
    Busy  // a thread or a helper process cannot be started now
  };
  Kind kind;
  std::string message;  // what is wrong and what to do
};

// Maximum size of one step of this model; arguments for the Recorder.
struct RecorderSize {
  std::size_t max_ops = 0;
  std::size_t slot_bytes = 0;
};

// 0..1; return false to cancel. Called on the loading thread.
using LoadProgress = std::function<bool(float)>;
// Called after the weights are loaded, before memory for the context is allocated. An error ends
// the load.
using WeightsLoaded = std::function<std::expected<void, std::string>()>;

class Engine {
 public:
  // `sandbox` renders chat templates and names the program that evaluates grammars; it must
  // outlive the engine. Null: conversations and grammars are rejected. Nothing is thrown: too
  // little memory, or a thread that cannot be started, is an error.
  static std::expected<std::unique_ptr<Engine>, EngineError> load(const ModelOptions& model,
                                                                  const ContextOptions& context,
                                                                  const LoadProgress& progress,
                                                                  Sandbox* sandbox = nullptr,
                                                                  const WeightsLoaded& loaded = {});
  ~Engine();

  const ModelFacts& facts() const;
  const GgufIndex& gguf() const;

  // Converts the prompt to token ids, applying the chat template. Errors: empty, too long,
  // ids that are not in the vocabulary, and so on.
  std::expected<std::vector<std::int32_t>, EngineError> tokens_of(const Prompt& prompt) const;
  // Validates a request before it runs; returns the tokens of its prompt.
  std::expected<std::vector<std::int32_t>, EngineError> check(
      const GenerationRequest& request) const;
  std::string piece(std::int32_t token) const;  // bytes; may be an incomplete character

  // Runs one request to its end, recording into `recorder` (null: level OFF). Errors are in the
  // result; what was recorded before an error is kept. `debugger` stops it, as
  // GenerationRequest::debug says (null: nothing does).
  GenerationResult generate(const GenerationRequest& request, Recorder* recorder,
                            GenerationListener& listener, Debugger* debugger = nullptr);
  void cancel();        // stops generate() after the current op
  void reset_cancel();  // call before the next generate()

  const Probe& probe() const;
  // Any thread; see MemoryManager.
  void set_memory(const MemoryOptions& options);
  // As MemoryManager::use_pattern().
  void use_pattern(StoredPattern pattern);
  MemoryState memory_state() const;
  MemoryMap memory_map() const;
  RecorderSize recorder_size() const;
  // Of a session of this model.
  RecordingOptions recording_options(const GenerationRequest& request) const;
  // Metadata of a session of this model: describe() sets request, model, host and libraries,
  // complete() adds the result.
  SessionInfo describe(const GenerationRequest& request) const;
  void complete(SessionInfo& info, const GenerationResult& result) const;

  struct Impl;                                  // engine_state.h
  const Impl& state() const { return *impl_; }  // for tracer/bench

 private:
  explicit Engine(std::unique_ptr<Impl> impl);
  static std::expected<std::unique_ptr<Engine>, EngineError> load_or_throw(
      const ModelOptions& model, const ContextOptions& context, const LoadProgress& progress,
      Sandbox* sandbox, const WeightsLoaded& loaded);
  std::expected<std::string, EngineError> text_of(const Prompt& prompt) const;
  std::unexpected<EngineError> too_long(std::uint32_t maximum, std::size_t count = 0) const;
  bool has_more_tokens(std::string_view text, std::uint32_t maximum) const;
  std::vector<std::int32_t> tokenize(const std::string& text) const;

  std::unique_ptr<Impl> impl_;
};

}  // namespace tt
