// Runs one request from its tokens to its result: prefix reuse, prompt chunks, sampling, stop
// conditions. Lives during one call of Engine::generate().
#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tracer/debug/debugger.h"
#include "tracer/engine/engine_state.h"
#include "tracer/engine/sampler.h"
#include "tracer/probe/name_pattern.h"
#include "tracer/probe/value_capture.h"
#include "tracer/recorder/recorder.h"
#include "tracer/request/generation.h"

namespace tt {

class GenerationRun {
 public:
  // `recorder` may be null (level OFF), and `debugger`.
  GenerationRun(Engine::Impl& engine, const GenerationRequest& request, Recorder* recorder,
                GenerationListener& listener, Debugger* debugger);
  GenerationResult run(std::vector<std::int32_t> tokens);

 private:
  enum class Outcome { Ok, Cancelled, Full, Lost, Failed };

  void embed(std::span<const std::int32_t> tokens);
  void generate(std::vector<std::int32_t> tokens);
  bool encode(std::span<const std::int32_t> tokens);
  std::uint32_t keep_prefix(std::span<const std::int32_t> tokens);
  CachedTokens compare_with_memory(std::span<const std::int32_t> tokens) const;
  std::string text_of(std::span<const std::int32_t> tokens) const;
  bool feed_prompt(std::span<const std::int32_t> tokens, std::uint32_t done);
  void sample_until_stopped(TokenSampler& sampler);
  void note_token_time();
  std::expected<std::int32_t, SampleError> sample(TokenSampler& sampler);
  void stop_on_sampler(const SampleError& error);
  void stop_on_grammar(const GrammarError& error);

  Outcome evaluate(Phase phase, std::span<const std::int32_t> tokens, bool want_logits);
  // `graphs_reused`: by the context, before the step.
  // Adds what depends on the token that follows the last step: `next`; nullopt: none was chosen.
  void finish_values(std::optional<std::int32_t> next);
  // Lets the recorder write when many captured values wait for it.
  void wait_for_values();
  void record_times(Step& header, Ns evaluated, std::int32_t graphs_reused);
  void finish_memory_step(const Step& header, const StepBuffer* buffer, bool complete);
  bool stop_on(Outcome outcome);
  void fail(std::string message);
  void forget_altered_tokens();
  void add_tokens(std::span<const std::int32_t> ids, std::uint32_t position, bool generated,
                  bool reused, std::string_view piece);
  Ns now() const;

  Engine::Impl& engine_;
  const GenerationRequest& request_;
  Recorder* recorder_;
  GenerationListener& listener_;
  Debugger* debugger_;
  GenerationResult result_;
  std::shared_ptr<const NamePattern> stats_;
  std::shared_ptr<ValueCapture> capture_;  // null: nothing is captured
  std::uint64_t values_written_ = 0;       // bytes
  std::optional<StepValues> open_values_;  // of the last step, until the next token is known
  std::unique_ptr<GrammarRun> grammar_;    // null: no grammar
  std::chrono::steady_clock::time_point epoch_;
  std::uint32_t token_count_ = 0;                   // tokens of the session so far
  std::uint32_t evaluated_ = 0;                     // index of the first token of the next step
  std::uint32_t position_ = 0;                      // in the sequence
  std::vector<std::int64_t> op_ns_;                 // of the last step; reused
  std::int64_t sample_ns_ = 0, detokenize_ns_ = 0;  // since the last step
  std::int64_t before_next_sample_ns_ = 0;          // sampling up to the first token
};

}  // namespace tt
