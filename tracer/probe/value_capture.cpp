#include "tracer/probe/value_capture.h"
#include "tracer/format/model/captured_kinds.h"
#include "tracer/format/model/lens_values.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>
#include <numeric>
#include <utility>

#include "tracer/format/file/blob_codec.h"
#include "tracer/format/names/names.h"
#include "tracer/probe/attention_weights.h"
#include "tracer/probe/tensor_rows.h"
#include "tracer/request/request_bounds.h"

namespace tt {

namespace {
constexpr std::uint64_t kMaxTop = 1024;
}  // namespace

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
    const auto what = rule.read_part(part);
    if (!what) {
      return std::unexpected(std::format(
          "\"@{}\" in the capture \"{}\" is not a range or a form. Use @L (layers), @T (tokens), "
          "@S (steps) or @I (inputs) with N, N-M or N-, such as @L0-3; @RN (the last N rows), @KN "
          "(the N largest values of each row, at most {}) or @F16.",
          part, text, kMaxTop));
    }
    if (seen.contains(*what))
      return std::unexpected(
          std::format("The capture \"{}\" has @{} twice; only one is allowed.", text, *what));
    seen += *what;
    mark = next;
  }
  if (rule.word_ != Word::None && seen.find_first_of("IRKF") != std::string::npos)
    return std::unexpected(std::format(
        "The capture \"{}\" has @{}; {} can have @L, @T and @S only. For an output of this name "
        "write ({}).",
        text, seen[seen.find_first_of("IRKF")], word, word));
  if (rule.form_.top > 0 && rule.form_.half)
    return std::unexpected(
        std::format("The capture \"{}\" has @K and @F16; only one of them is allowed.", text));
  return rule;
}

std::optional<char> CaptureRule::read_part(std::string_view part) {
  if (part.empty()) return std::nullopt;
  const char what = part.front();
  if (what == 'F') {
    form_.half = part == "F16";
    return form_.half ? std::optional(what) : std::nullopt;
  }
  const auto range = IndexRange::parse(part.substr(1));
  if (!range) return std::nullopt;
  const bool is_count = range->first == range->last && range->first > 0;
  switch (what) {
    case 'L':
      layers_ = range;
      return what;
    case 'T':
      tokens_ = *range;
      return what;
    case 'S':
      steps_ = *range;
      return what;
    case 'I':
      sources_ = range;
      return what;
    case 'R':
      form_.last_rows = range->first;
      return is_count ? std::optional(what) : std::nullopt;
    case 'K':
      form_.top = static_cast<std::uint32_t>(range->first);
      return is_count && range->first <= kMaxTop ? std::optional(what) : std::nullopt;
    default:
      return std::nullopt;
  }
}

namespace {

// `router`: by what a mixture of experts chooses them. These are the probabilities or, depending on
// the architecture, probabilities plus a bias, those of some groups of experts, or logits: always
// source 0 of the op that sorts them. The names are llama.cpp's.
std::expected<std::vector<CaptureRule>, std::string> rules_of(const std::string& text) {
  constexpr std::string_view kRouter = "router";
  std::vector<CaptureRule> rules;
  const auto add = [&](const std::string& rule_text) -> std::expected<void, std::string> {
    return CaptureRule::parse(rule_text).transform(
        [&](CaptureRule rule) { rules.push_back(std::move(rule)); });
  };
  if (auto added = add(text); !added) return std::unexpected(added.error());
  if (text.substr(0, text.find('@')) != kRouter) return rules;
  rules.clear();
  const std::string ranges = text.substr(kRouter.size());
  if (const auto form = ranges.find_first_of("IRKF"); form != std::string::npos) {
    return std::unexpected(
        std::format("The capture \"{}\" has @{}; {} can have @L, @T and @S only. For an output of "
                    "this name write ({}).",
                    text, ranges[form], kRouter, kRouter));
  }
  for (const std::string& rule : {"^ffn_moe_probs-" + ranges, "^ffn_moe_argsort-" + ranges + "@I0"})
    if (auto added = add(rule); !added) return std::unexpected(added.error());
  return rules;
}

}  // namespace

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
    auto some = rules_of(text);
    if (!some) return std::unexpected(some.error());
    rules.append_range(*std::move(some));
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

bool CaptureRule::selects(const std::string& name) const {
  return word_ == Word::None && in_layers(name) && pattern_.matches_name(name);
}

bool CaptureRule::wants_output(const std::string& name) const { return !sources_ && selects(name); }

bool CaptureRule::wants_sources(const std::string& name) const {
  return sources_.has_value() && selects(name);
}

bool CaptureRule::wants_source(const std::string& name, std::uint64_t source) const {
  return sources_.has_value() && sources_->contains(source) && selects(name);
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

const CaptureForm* ValueCapture::wants(const std::string& name) const {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (active_[i] && rules_[i].wants_output(name)) return &rules_[i].form();
  return nullptr;
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

bool ValueCapture::wants_sources(const std::string& name) const {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (active_[i] && rules_[i].wants_sources(name)) return true;
  return false;
}

const CaptureRule* ValueCapture::rule_of_source(const std::string& name,
                                                std::uint64_t source) const {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (active_[i] && rules_[i].wants_source(name, source)) return &rules_[i];
  return nullptr;
}

bool ValueCapture::needs_next_token() const {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (active_[i] && rules_[i].is_lens()) return true;
  return false;
}

bool ValueCapture::needs_all_keys() const {
  return std::ranges::any_of(rules_, &CaptureRule::is_attention);
}

bool ValueCapture::fits(std::size_t n, std::size_t bytes, const StepValues& values) {
  if (n > step_values_left_ || n * bytes > bytes_left_ ||
      values.outputs.size() >= kMaxCapturedOutputs)
    return false;
  step_values_left_ -= n;
  bytes_left_ -= n * bytes;
  return true;
}

namespace {

// Sources of an op are read before its output.
void add_in_order(OutputValues captured, std::vector<OutputValues>& outputs) {
  const auto place = [](const OutputValues& of) { return std::pair(of.op, of.of); };
  const auto at = std::ranges::upper_bound(outputs, place(captured), {}, place);
  outputs.insert(at, std::move(captured));
}

// NaN is the largest value: it must not be overlooked.
float size_of(float value) {
  return std::isnan(value) ? std::numeric_limits<float>::infinity() : std::abs(value);
}

// Appends the columns of the `count` largest values of `row`, then these values.
void append_top(std::span<const float> row, std::size_t count, std::vector<std::uint32_t>& columns,
                std::vector<float>& out) {
  columns.resize(row.size());
  std::ranges::iota(columns, 0U);
  std::ranges::partial_sort(columns, columns.begin() + static_cast<std::ptrdiff_t>(count), {},
                            [&](std::uint32_t i) { return std::pair(-size_of(row[i]), i); });
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<float>(columns[i]));
  for (std::size_t i = 0; i < count; ++i) out.push_back(row[columns[i]]);
}

}  // namespace

void ValueCapture::take_rows(OpId op, ValuesOf of, const CaptureForm& form,
                             const ggml_tensor& tensor, StepValues& values) {
  constexpr std::uint64_t kExactColumns = std::uint64_t{1} << 24;  // as f32
  const auto columns = static_cast<std::uint64_t>(tensor.ne[0]);
  const auto all = static_cast<std::uint64_t>(ggml_nrows(&tensor));
  const std::uint64_t rows = std::min(all, form.last_rows);
  const std::uint64_t top = std::min<std::uint64_t>(form.top, columns);
  OutputValues captured{.op = op, .of = of, .ne = {}, .values = {}};
  if (top > 0) {
    captured.of = top_of(of);
    captured.ne = {top, 2, rows, 1};
  } else if (rows < all) {
    captured.ne = {columns, rows, 1, 1};
  } else {
    std::ranges::copy(tensor.ne, captured.ne.begin());
  }
  const std::size_t n = top > 0 ? 2 * top * rows : columns * rows;
  const bool readable = has_readable_rows(tensor) && has_memory(tensor) && !is_repacked(tensor);
  if (!readable || (top > 0 && columns > kExactColumns) ||
      !fits(n, form.half ? sizeof(ggml_fp16_t) : sizeof(float), values)) {
    ++values.not_captured;
    return;
  }
  captured.values.reserve(n);
  std::vector<std::uint32_t> order;
  std::uint64_t before = all - rows;  // rows that are left out
  for_each_row(tensor, scratch_, [&](std::span<const float> row) {
    if (before > 0) {
      --before;
    } else if (top > 0) {
      append_top(row, top, order, captured.values);
    } else {
      captured.values.append_range(row);
    }
  });
  if (form.half)
    for (float& value : captured.values) value = ggml_fp16_to_fp32(ggml_fp32_to_fp16(value));
  add_in_order(std::move(captured), values.outputs);
}

void ValueCapture::take_sources(OpId op, const std::string& name, const ggml_tensor& first,
                                StepValues& values) {
  for (std::uint8_t i = 0; i < std::min<int>(GGML_MAX_SRC, kMaxCapturedSources); ++i)
    if (const CaptureRule* const rule = first.src[i] == nullptr ? nullptr : rule_of_source(name, i))
      take_rows(op, values_of_source(i), rule->form(), *first.src[i], values);
}

void ValueCapture::miss_sources(const std::string& name, const ggml_tensor& first,
                                StepValues& values) const {
  for (std::uint8_t i = 0; i < std::min<int>(GGML_MAX_SRC, kMaxCapturedSources); ++i)
    if (first.src[i] != nullptr && rule_of_source(name, i) != nullptr) ++values.not_captured;
}

void ValueCapture::take_attention(OpId op, const ggml_tensor& output, StepValues& values) {
  const bool flash = output.op == GGML_OP_FLASH_ATTN_EXT;
  OutputValues captured{.op = op, .of = ValuesOf::Attention, .ne = {}, .values = {}};
  if (flash)
    captured.ne = attention_shape(output);
  else
    std::ranges::copy(output.ne, captured.ne.begin());
  std::size_t n = 1;
  for (const std::uint64_t ne : captured.ne) n *= static_cast<std::size_t>(ne);
  if (!(flash ? has_readable_attention(output) : has_readable_rows(output)) ||
      !fits(n, sizeof(float), values)) {
    ++values.not_captured;
    return;
  }
  captured.values = flash ? attention_weights(output, scratch_) : row_values(output, scratch_);
  add_in_order(std::move(captured), values.outputs);
}

void ValueCapture::add_lens(std::optional<std::int32_t> next, const TokenText& text,
                            StepValues& values) {
  for (OutputValues& said : lens_.finish(next, text, values.not_captured)) {
    if (fits(said.values.size(), sizeof(float), values))
      values.outputs.push_back(std::move(said));
    else
      ++values.not_captured;
  }
  std::ranges::sort(values.outputs, {},
                    [](const OutputValues& of) { return std::pair(of.op, of.of); });
}

}  // namespace tt
