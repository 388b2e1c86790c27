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

#include "tracer/format/session.h"
#include "tracer/format/step.h"
#include "tracer/generation.h"
#include "tracer/probe.h"

namespace tt {

class Recorder;

enum class FlashAttention : std::uint8_t { Auto, On, Off };

struct ModelOptions {
  std::filesystem::path path;
  std::int32_t gpu_layers = 0;
  bool mmap = true;
  bool mlock = false;
  bool repack = true;                    // rewrite weights for faster kernels at load
  std::vector<std::string> rpc_servers;  // host:port of llama.cpp RPC servers
};

struct ContextOptions {
  std::uint32_t context = 4096;  // tokens; 0: as trained
  std::uint32_t batch = 2048;
  std::uint32_t ubatch = 512;      // most tokens of one step
  std::int32_t threads = 0;        // 0: one per core
  std::int32_t threads_batch = 0;  // 0: as threads
  FlashAttention flash_attention = FlashAttention::Auto;
  std::string cache_type_k = "f16";
  std::string cache_type_v = "f16";
};

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

struct ModelFacts {
  std::string name, description, architecture;
  std::uint64_t size = 0;  // bytes of weights
  std::uint32_t n_layers = 0, n_embd = 0, n_heads = 0, n_heads_kv = 0, n_vocab = 0;
  std::uint32_t n_experts = 0, n_experts_used = 0;
  std::uint32_t context = 0;  // tokens that fit
  std::uint32_t context_trained = 0;
  std::uint32_t ubatch = 0;
  std::int32_t threads = 0;
  bool has_vocabulary = false, has_chat_template = false;
  bool has_encoder = false;     // encoder-decoder (T5)
  bool embedding_only = false;  // no generation (BERT)
  bool recurrent = false, hybrid = false;
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
  std::string piece(std::int32_t token) const;  // its bytes; may be half a character

  // Runs one request to its end, recording into `recorder` (null: level OFF).
  // What went wrong inside is in the result; what was recorded until then stays.
  GenerationResult generate(const GenerationRequest& request, Recorder* recorder,
                            GenerationListener& listener);
  void cancel();        // the running generate() stops after the op in flight
  void reset_cancel();  // before the next one

  const Probe& probe() const;
  // What a session of this model says about itself: model, host, libraries.
  SessionInfo describe(const GenerationRequest& request) const;

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt
