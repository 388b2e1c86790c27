// Grammars (GBNF), parsed and evaluated by llama.cpp in a child process. Its parser recurses
// without limit, and one accepted token can take any amount of time and memory: the inference
// thread must not run it.
//
// The child holds llama.cpp's grammar sampler. For each token it sends one bit per token of the
// vocabulary: whether the grammar allows it next. It computes only while the inference thread
// waits for it, never while a graph runs, so that it does not disturb the times of ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracer/gguf/llama_handles.h"
#include "tracer/sandbox/sandbox.h"
#include "tracer/sandbox/worker.h"

namespace tt {

struct GrammarError {
  // Grammar: it cannot be used. Server: the child could not be run; try again later.
  enum class Kind : std::uint8_t { Grammar, Server, Cancelled } kind;
  std::string message;  // what is wrong and what to do
};

// The handler "grammar" of tt-worker.
JobKind grammar_job(const llama_vocab* vocab);
// The model's vocabulary without its weights; null if it cannot be loaded.
LlamaModel load_vocabulary(const std::filesystem::path& model);

// A grammar that is followed token by token. One thread.
class GrammarRun {
 public:
  // `vocabulary`: tt-worker with the model as its argument; `tokens`: the size of its vocabulary.
  // Returns when the child has parsed the grammar and knows the first allowed tokens.
  static std::expected<std::unique_ptr<GrammarRun>, GrammarError> start(
      Sandbox& vocabulary, const std::string& grammar, std::size_t tokens,
      const KeepGoing& keep_going = {});

  // A sampler for a chain: excludes the tokens that the grammar does not allow. Must not outlive
  // this object. The chain owns it.
  llama_sampler* sampler();
  // Set when the sampler could not decide; the sampled token is then meaningless.
  const std::optional<GrammarError>& error() const { return error_; }

 private:
  explicit GrammarRun(SandboxJob job, std::size_t tokens, KeepGoing keep_going);
  void update();  // sends the accepted tokens and receives the allowed ones
  void receive();
  bool allows(std::int32_t token) const;
  static GrammarRun& of(const llama_sampler* sampler);

  SandboxJob job_;
  const std::size_t tokens_;
  const KeepGoing keep_going_;
  std::vector<std::int32_t> accepted_;  // not sent yet
  std::string allowed_;                 // one bit per token
  std::optional<GrammarError> error_;
};

}  // namespace tt
