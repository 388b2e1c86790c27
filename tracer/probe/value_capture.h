// Which op outputs of a session are captured, and how many still fit into its budget. The values
// of an output are read when its op has run, as f32 (`tt record --capture`, docs/values.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/format/model/step.h"
#include "tracer/probe/index_range.h"
#include "tracer/probe/logit_lens.h"
#include "tracer/probe/name_pattern.h"
#include "tracer/request/generation.h"

struct ggml_tensor;

namespace tt {

// PATTERN[@L<layers>][@T<tokens>][@S<steps>]: outputs whose name matches (NamePattern), of ops in
// these layers, in steps that evaluate one of these tokens, in these steps. A range is N, N-M or
// N- (to the end), from 0. Two patterns are words: `attention`, the attention weights of each
// layer, and `lens`, what the model would say after each layer (logit_lens.h).
class CaptureRule {
 public:
  // The error text is a sentence about `text`.
  static std::expected<CaptureRule, std::string> parse(const std::string& text);
  bool wants_step(const Step& step) const;
  bool wants_output(const std::string& name) const;
  // `operation`: ggml's, "SOFT_MAX". `keys`: the name of its second source.
  bool wants_attention(std::string_view operation, const std::string& name,
                       const std::string& keys) const;
  bool wants_lens(const std::string& name) const;
  bool is_attention() const { return word_ == Word::Attention; }
  bool is_lens() const { return word_ == Word::Lens; }

 private:
  enum class Word : std::uint8_t { None, Attention, Lens };
  explicit CaptureRule(NamePattern pattern) : pattern_(std::move(pattern)) {}

  bool in_layers(const std::string& name) const;

  NamePattern pattern_;  // in tensor names
  Word word_ = Word::None;
  std::optional<IndexRange> layers_;
  IndexRange tokens_, steps_;
};

// The rules of GenerationRequest::capture. The error text is a sentence.
std::expected<std::vector<CaptureRule>, std::string> capture_rules(
    const GenerationRequest& request);

// Inference thread only.
class ValueCapture {
 public:
  // `max_bytes`: of the values of the session, as f32.
  ValueCapture(std::vector<CaptureRule> rules, std::uint64_t max_bytes);

  // Returns whether a rule wants outputs of this step. `says`: it has logits, from which the next
  // token is chosen.
  bool begin_step(const Step& step, bool says);
  // Those of the rules that want the step: a step with the same set wants the same outputs.
  const std::vector<bool>& active() const { return active_; }
  bool wants(const std::string& name) const;
  bool wants_attention(std::string_view operation, const std::string& name,
                       const std::string& keys) const;
  bool wants_lens(const std::string& name) const;
  // Whether a rule wants attention weights: their keys must be those of tokens of the session, so
  // that no prefix of the prompt may be reused.
  bool needs_all_keys() const;
  std::uint64_t bytes_left() const { return bytes_left_; }

  // Adds the output of `op`, which is complete and not yet overwritten, to `values`, whose outputs
  // are of earlier ops. Counts it as not captured if it does not fit or cannot be read as numbers.
  void take(OpId op, ValuesOf of, const ggml_tensor& output, StepValues& values);
  // Whether values of the step depend on the token that follows it: add_lens() adds them.
  bool needs_next_token() const;
  // `next`: the token that was chosen; nullopt: none.
  void add_lens(std::optional<std::int32_t> next, const TokenText& text, StepValues& values);

 private:
  // Whether that many values fit. If they do, they count.
  bool fits(std::size_t n, const StepValues& values);

  std::vector<CaptureRule> rules_;
  std::vector<bool> active_;  // parallel to rules_
  std::uint64_t bytes_left_;
  std::size_t step_values_left_ = 0;
  std::vector<std::byte> scratch_;
  LogitLens lens_;
};

}  // namespace tt
