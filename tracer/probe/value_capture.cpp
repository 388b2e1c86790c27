#include "tracer/probe/value_capture.h"
#include "tracer/format/model/lens_values.h"

#include <ggml.h>

#include <algorithm>
#include <format>
#include <utility>

#include "tracer/format/file/blob_codec.h"
#include "tracer/format/names/names.h"
#include "tracer/probe/attention_weights.h"
#include "tracer/probe/tensor_rows.h"
#include "tracer/request/request_bounds.h"

namespace tt {

// ---------------------------------------------------------------- rules

std::expected<CaptureRule, std::string> CaptureRule::parse(const std::string& text) {
  if (text.size() > kMaxPatternBytes) {
    return std::unexpected(
        std::format("A capture has {} bytes; the maximum is {}.", text.size(), kMaxPatternBytes));
  }
  const std::size_t at = text.find('@');
  if (at == 0 || text.empty())
    return std::unexpected("A capture needs a pattern of names, such as l_out@L0-3.");
  auto pattern = NamePattern::compile(text.substr(0, at));
  if (!pattern)
    return std::unexpected(
        std::format("The pattern of the capture \"{}\" {}", text, pattern.error()));
  CaptureRule rule(*std::move(pattern));
  const std::string_view word = std::string_view(text).substr(0, at);
  if (word == "attention") rule.word_ = Word::Attention;
  if (word == "lens") rule.word_ = Word::Lens;
  std::string seen;
  for (std::size_t mark = at; mark != std::string::npos;) {
    const std::size_t next = text.find('@', mark + 1);
    const std::string_view part =
        std::string_view(text).substr(mark + 1, next == text.npos ? next : next - mark - 1);
    const char what = part.empty() ? ' ' : part.front();
    const auto range = part.empty() ? std::nullopt : IndexRange::parse(part.substr(1));
    if (!range || !std::string_view("LTS").contains(what)) {
      return std::unexpected(
          std::format("\"@{}\" in the capture \"{}\" is not a range. Use @L (layers), @T (tokens) "
                      "or @S (steps) with N, N-M or N-, such as @L0-3.",
                      part, text));
    }
    if (seen.contains(what))
      return std::unexpected(
          std::format("The capture \"{}\" has two ranges @{}; only one is allowed.", text, what));
    seen += what;
    if (what == 'L') rule.layers_ = range;
    if (what == 'T') rule.tokens_ = *range;
    if (what == 'S') rule.steps_ = *range;
    mark = next;
  }
  return rule;
}

std::expected<std::vector<CaptureRule>, std::string> capture_rules(
    const GenerationRequest& request) {
  if (request.capture.size() > kMaxCaptures) {
    return std::unexpected(
        std::format("The request has {} captures; at most {} are allowed. A pattern may have "
                    "alternatives, such as l_out|attn_out.",
                    request.capture.size(), kMaxCaptures));
  }
  if (!request.capture.empty() && request.level < Level::Detailed) {
    return std::unexpected(
        std::format("Values are captured at level detailed or verbose, not at level {}.",
                    to_text(request.level)));
  }
  std::vector<CaptureRule> rules;
  for (const std::string& text : request.capture) {
    auto rule = CaptureRule::parse(text);
    if (!rule) return std::unexpected(rule.error());
    rules.push_back(*std::move(rule));
  }
  return rules;
}

bool CaptureRule::wants_step(const Step& step) const {
  const std::uint64_t first = step.first_token, end = first + step.n_tokens;
  return steps_.contains(step.id.v) && tokens_.overlaps(first, end);
}

bool CaptureRule::in_layers(const std::string& name) const {
  if (!layers_) return true;
  const LayerId layer = layer_of(name);
  return layer != kNoLayer && layers_->contains(static_cast<std::uint64_t>(layer.v));
}

bool CaptureRule::wants_output(const std::string& name) const {
  return word_ == Word::None && in_layers(name) && pattern_.matches_name(name);
}

// Without flash attention the weights are an output; routers have other outputs of SOFT_MAX.
// FLASH_ATTN_EXT has no name with a layer, its keys have.
bool CaptureRule::wants_attention(std::string_view operation, const std::string& name,
                                  const std::string& keys) const {
  if (!is_attention()) return false;
  if (operation == "FLASH_ATTN_EXT") return in_layers(keys);
  return operation == "SOFT_MAX" && name.starts_with("kq_soft_max") && in_layers(name);
}

// The logits belong to no layer. They are always wanted.
bool CaptureRule::wants_lens(const std::string& name) const {
  return is_lens() && LogitLens::uses(name) && (layer_of(name) == kNoLayer || in_layers(name));
}

// ---------------------------------------------------------------- capture

ValueCapture::ValueCapture(std::vector<CaptureRule> rules, std::uint64_t max_bytes)
    : rules_(std::move(rules)), active_(rules_.size()), bytes_left_(max_bytes) {}

bool ValueCapture::begin_step(const Step& step, bool says) {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    active_[i] = rules_[i].wants_step(step) && (says || !rules_[i].is_lens());
  step_values_left_ = kMaxCapturedValues;
  lens_.begin_step(step.threads);
  return std::ranges::find(active_, true) != active_.end();
}

bool ValueCapture::wants(const std::string& name) const {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (active_[i] && rules_[i].wants_output(name)) return true;
  return false;
}

bool ValueCapture::wants_attention(std::string_view operation, const std::string& name,
                                   const std::string& keys) const {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (active_[i] && rules_[i].wants_attention(operation, name, keys)) return true;
  return false;
}

bool ValueCapture::wants_lens(const std::string& name) const {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (active_[i] && rules_[i].wants_lens(name)) return true;
  return false;
}

bool ValueCapture::needs_next_token() const {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (active_[i] && rules_[i].is_lens()) return true;
  return false;
}

bool ValueCapture::needs_all_keys() const {
  return std::ranges::any_of(rules_, &CaptureRule::is_attention);
}

bool ValueCapture::fits(std::size_t n, const StepValues& values) {
  if (n > step_values_left_ || n * sizeof(float) > bytes_left_ ||
      values.outputs.size() >= kMaxCapturedOutputs)
    return false;
  step_values_left_ -= n;
  bytes_left_ -= n * sizeof(float);
  return true;
}

void ValueCapture::take(OpId op, ValuesOf of, const ggml_tensor& output, StepValues& values) {
  if (of == kLensValues) return lens_.take(op, output);
  const bool flash = of == ValuesOf::Attention && output.op == GGML_OP_FLASH_ATTN_EXT;
  OutputValues captured{.op = op, .of = of, .ne = {}, .values = {}};
  if (flash)
    captured.ne = attention_shape(output);
  else
    std::ranges::copy(output.ne, captured.ne.begin());
  std::size_t n = 1;
  for (const std::uint64_t ne : captured.ne) n *= static_cast<std::size_t>(ne);
  if (!(flash ? has_readable_attention(output) : has_readable_rows(output)) || !fits(n, values)) {
    ++values.not_captured;
    return;
  }
  captured.values = flash ? attention_weights(output, scratch_) : row_values(output, scratch_);
  values.outputs.push_back(std::move(captured));
}

void ValueCapture::add_lens(std::optional<std::int32_t> next, const TokenText& text,
                            StepValues& values) {
  for (OutputValues& said : lens_.finish(next, text, values.not_captured)) {
    if (fits(said.values.size(), values))
      values.outputs.push_back(std::move(said));
    else
      ++values.not_captured;
  }
  std::ranges::sort(values.outputs, {},
                    [](const OutputValues& of) { return std::pair(of.op, of.of); });
}

}  // namespace tt
