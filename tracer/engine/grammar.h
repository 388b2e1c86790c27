// Grammars (GBNF), parsed and evaluated by llama.cpp in a child process. Its parser recurses
// without limit, and one accepted token can take any amount of time and memory: the inference
// thread must not run it.
//
// The child holds llama.cpp's grammar sampler with its state. For each token, one message passes
// the token before it and a candidate. The reply is that the grammar allows the candidate or, if it
// does not, one bit per token of the vocabulary: whether the grammar allows it. Checking one token
// takes microseconds, checking the vocabulary milliseconds, and models mostly propose an allowed
// one. The child computes only while the inference thread waits for it, never while a graph runs,
// so that it does not disturb the times of ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
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
  // Returns when the child has parsed the grammar.
  static std::expected<std::unique_ptr<GrammarRun>, GrammarError> start(
      Sandbox& vocabulary, const std::string& grammar, std::size_t tokens,
      const KeepGoing& keep_going = {});

  // Whether the grammar allows this token next. False also after an error.
  bool allows(std::int32_t token);
  // After allows() returned false: sets the logits of the tokens that the grammar does not allow to
  // -infinity. No effect after an error.
  void exclude(std::span<llama_token_data> candidates) const;
  // The token that was chosen, which the grammar allows. Sent with the next question.
  void accept(std::int32_t token) { accepted_ = token; }
  // Whether any token can follow; otherwise error() says what is wrong.
  bool allows_any();
  // Set when the child could not answer.
  const std::optional<GrammarError>& error() const { return error_; }

 private:
  explicit GrammarRun(SandboxJob job, std::size_t tokens, KeepGoing keep_going);
  bool ask(std::int32_t candidate);
  void fail(const JobError& error);
  std::optional<std::string> receive();

  SandboxJob job_;
  const std::size_t tokens_;
  const KeepGoing keep_going_;
  std::int32_t accepted_;  // not sent yet; kNoToken: sent
  std::string allowed_;    // the last reply with one bit per token
  std::optional<GrammarError> error_;
};

}  // namespace tt
