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

// How an array is stored.
struct CaptureForm {
  std::uint64_t last_rows = UINT64_MAX;  // only so many rows (ne[0] values each), from the end
  std::uint32_t top = 0;                 // of each row only the largest values; 0: all
  bool half = false;                     // rounded to f16
};

// PATTERN[@L<layers>][@T<tokens>][@S<steps>]: outputs whose name matches (NamePattern), of ops in
// these layers, in steps that evaluate one of these tokens, in these steps. A range is N, N-M or
// N- (to the end), from 0. @I<sources>: not the output, but these sources of the op. @R<N>, @K<N>,
// @F16: the form. Two patterns are words: `attention`, the attention weights of each layer, and
// `lens`, what the model would say after each layer (logit_lens.h); they have no sources and forms.
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
  // Of the op whose output is `name`.
  bool wants_source(const std::string& name, std::uint64_t source) const;
  bool wants_sources(const std::string& name) const;
  const CaptureForm& form() const { return form_; }
  bool is_attention() const { return word_ == Word::Attention; }
  bool is_lens() const { return word_ == Word::Lens; }

 private:
  enum class Word : std::uint8_t { None, Attention, Lens };
  explicit CaptureRule(NamePattern pattern) : pattern_(std::move(pattern)) {}

  bool in_layers(const std::string& name) const;
  bool selects(const std::string& name) const;
  // Reads a part without its '@'. nullopt: it is wrong.
  std::optional<char> read_part(std::string_view part);

  NamePattern pattern_;  // in tensor names
  Word word_ = Word::None;
  std::optional<IndexRange> layers_;
  IndexRange tokens_, steps_;
  std::optional<IndexRange> sources_;  // nullopt: the output
  CaptureForm form_;
};

// The rules of GenerationRequest::capture. The error text is a sentence.
std::expected<std::vector<CaptureRule>, std::string> capture_rules(
    const GenerationRequest& request);

// Captured values that may wait for the disk. More than Recorder::kMaxWaitingBytes would drop the
// next step.
inline constexpr std::uint64_t kMaxUnwrittenValues = 16U << 20;

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
  // The form in which the output is wanted, of the first rule that wants it; null: it is not. Valid
  // as long as this object.
  const CaptureForm* wants(const std::string& name) const;
  bool wants_attention(std::string_view operation, const std::string& name,
                       const std::string& keys) const;
  bool wants_lens(const std::string& name) const;
  bool wants_sources(const std::string& name) const;
  // Whether a rule wants attention weights: their keys must be those of tokens of the session, so
  // that no prefix of the prompt may be reused.
  bool needs_all_keys() const;
  std::uint64_t bytes_left() const { return bytes_left_; }

  // Adds the output of `op`, which is complete and not yet overwritten, to `values`, whose outputs
  // are of earlier ops. Counts it as not captured if it does not fit or cannot be read as numbers.
  void take(OpId op, const CaptureForm& form, const ggml_tensor& output, StepValues& values) {
    take_rows(op, ValuesOf::Output, form, output, values);
  }
  // The same for its attention weights, and what add_lens() needs of it.
  void take_attention(OpId op, const ggml_tensor& output, StepValues& values);
  void take_lens(OpId op, const ggml_tensor& output) { lens_.take(op, output); }
  // The same for the sources of `op` that are wanted. Call it before the op runs: its output may
  // take their place. `name`: of its output; `first`: its first node.
  void take_sources(OpId op, const std::string& name, const ggml_tensor& first, StepValues& values);
  // Counts the wanted sources of an op that cannot be read.
  void miss_sources(const std::string& name, const ggml_tensor& first, StepValues& values) const;
  // Whether values of the step depend on the token that follows it: add_lens() adds them.
  bool needs_next_token() const;
  // `next`: the token that was chosen; nullopt: none.
  void add_lens(std::optional<std::int32_t> next, const TokenText& text, StepValues& values);

 private:
  // Whether that many values fit, in bytes each. If they do, they count.
  bool fits(std::size_t n, std::size_t bytes, const StepValues& values);
  // The first active rule that wants a source; null: none.
  const CaptureRule* rule_of_source(const std::string& name, std::uint64_t source) const;
  // A tensor with readable rows in a form.
  void take_rows(OpId op, ValuesOf of, const CaptureForm& form, const ggml_tensor& tensor,
                 StepValues& values);

  std::vector<CaptureRule> rules_;
  std::vector<bool> active_;  // parallel to rules_
  std::uint64_t bytes_left_;
  std::size_t step_values_left_ = 0;
  std::vector<std::byte> scratch_;
  LogitLens lens_;
};

}  // namespace tt
