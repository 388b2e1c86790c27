#include "tracer/debug/breakpoint.h"

#include <ggml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <format>
#include <set>
#include <utility>

#include "tracer/debug/words.h"
#include "tracer/request/debug_options.h"
#include "tracer/request/request_bounds.h"
#include "tracer/text/join.h"
#include "tracer/text/nearest.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

struct NumberName {
  std::string_view name;
  double OutputStatistics::* member;
};
constexpr std::array kNumbers = {
    NumberName{"min", &OutputStatistics::min}, NumberName{"max", &OutputStatistics::max},
    NumberName{"mean", &OutputStatistics::mean}, NumberName{"std", &OutputStatistics::std},
    NumberName{"norm", &OutputStatistics::norm}};
struct CountName {
  std::string_view name;
  std::uint64_t OutputStatistics::* member;
};
constexpr std::array kCounts = {CountName{"nan", &OutputStatistics::nan},
                                CountName{"inf", &OutputStatistics::inf}};

// As ggml_op_desc() names the ops that do work.
std::vector<std::string> operations() {
  std::set<std::string> names;
  for (int op = 0; op < GGML_OP_COUNT; ++op) names.insert(ggml_op_name(static_cast<ggml_op>(op)));
  for (int op = 0; op < GGML_UNARY_OP_COUNT; ++op)
    names.insert(ggml_unary_op_name(static_cast<ggml_unary_op>(op)));
  for (int op = 0; op < GGML_GLU_OP_COUNT; ++op)
    names.insert(ggml_glu_op_name(static_cast<ggml_glu_op>(op)));
  for (const char* none : {"NONE", "UNARY", "GLU", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE"})
    names.erase(none);
  return {names.begin(), names.end()};
}

std::unexpected<std::string> wrong(std::string text) { return std::unexpected(std::move(text)); }

}  // namespace

namespace {

std::string op_text(const OpPlace& place) {
  return std::format("op {}{}: {} {}", place.op.v,
                     place.layer == kNoLayer ? "" : std::format(", layer {}", place.layer.v),
                     place.operation, place.name);
}

}  // namespace

std::string to_text(const OpPlace& place) {
  return std::format("step {}, {}", place.step.v, op_text(place));
}

std::string to_text(const OpPlace& place, StepId last_step) {
  return std::format("steps {} to {}, {}", place.step.v, last_step.v, op_text(place));
}

std::expected<Breakpoint::Condition, std::string> Breakpoint::parse_condition(
    std::span<const std::string_view> words) {
  Condition condition;
  const std::string_view name = words.empty() ? std::string_view() : words[0];
  for (const NumberName& of : kNumbers)
    if (of.name == name) condition.number = of.member;
  for (const CountName& of : kCounts)
    if (of.name == name) condition.count = of.member;
  if (condition.number == nullptr && condition.count == nullptr) {
    std::vector<std::string> names;
    for (const CountName& of : kCounts) names.emplace_back(of.name);
    for (const NumberName& of : kNumbers) names.emplace_back(of.name);
    return wrong(unknown_name("statistic", name, names));
  }
  if (words.size() == 1 && condition.count != nullptr) return condition;
  const auto bound = words.size() == 3 ? parse_number<double>(words[2]) : std::optional<double>();
  if (!bound || (words[1] != "<" && words[1] != ">"))
    return wrong(
        std::format("A condition is a statistic, < or >, and a number: if {} > 100", name));
  condition.greater = words[1] == ">";
  condition.bound = *bound;
  return condition;
}

std::expected<Breakpoint, std::string> Breakpoint::parse(const std::string& text) {
  if (text.size() > kMaxPatternBytes) {
    return wrong(std::format("A breakpoint has {} bytes; the maximum is {}.", text.size(),
                             kMaxPatternBytes));
  }
  const std::vector<std::string_view> words = words_of(text);
  if (words.empty())
    return wrong("A breakpoint needs a place, such as l_out or op MUL_MAT layer 3.");
  Breakpoint made;
  made.text_ = text;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "if") {
      auto condition = parse_condition(std::span(words).subspan(i + 1));
      if (!condition) return wrong(std::move(condition.error()));
      made.condition_ = *condition;
      break;
    }
    constexpr std::array kFlags = {"watch", "before"};
    constexpr std::array kParts = {"op", "layer", "token", "step", "expert"};
    const bool is_part = std::ranges::contains(kParts, word);
    const std::string_view part = is_part || std::ranges::contains(kFlags, word)
                                      ? word
                                      : std::string_view("pattern of names");
    if (!seen.insert(part).second)
      return wrong(std::format("A breakpoint has one {}; \"{}\" has two.", part, text));
    if (word == "watch") {
      made.watch_ = true;
    } else if (word == "before") {
      made.before_ = true;
    } else if (!is_part) {
      auto pattern = NamePattern::compile(std::string(word));
      if (!pattern) return wrong(std::format("The pattern \"{}\" {}", word, pattern.error()));
      made.pattern_ = *std::move(pattern);
    } else if (i + 1 == words.size()) {
      return wrong(std::format("\"{}\" needs a {}.", word, word == "op" ? "name" : "number"));
    } else if (word == "op") {
      made.operation_ = words[++i];
      std::ranges::transform(made.operation_, made.operation_.begin(),
                             [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      const std::vector<std::string> known = operations();
      if (!std::ranges::contains(known, made.operation_)) {
        return wrong(std::format("\"{}\" is not an op of ggml{}", words[i],
                                 did_you_mean(made.operation_, known)) +
                     ".");
      }
    } else if (word == "expert") {
      const auto expert = parse_number<std::int32_t>(words[++i]);
      if (!expert || *expert < 0)
        return wrong(std::format("\"expert {}\" is not a number from 0.", words[i]));
      made.expert_ = *expert;
    } else {
      const auto range = IndexRange::parse(words[++i]);
      if (!range) {
        return wrong(
            std::format("\"{} {}\" is not a range. Use N, N-M or N-, from 0.", word, words[i]));
      }
      if (word == "layer") made.layers_ = *range;
      if (word == "token") made.tokens_ = *range;
      if (word == "step") made.steps_ = *range;
    }
  }
  if (made.before_ && (made.condition_ || made.watch_))
    return wrong("Before an op runs, its output has no values: remove \"before\".");
  return made;
}

bool Breakpoint::is_at(const OpPlace& place) const {
  return steps_.contains(place.step.v) &&
         tokens_.overlaps(place.first_token, std::uint64_t{place.first_token} + place.n_tokens) &&
         (!layers_ || (place.layer != kNoLayer &&
                       layers_->contains(static_cast<std::uint64_t>(place.layer.v)))) &&
         (operation_.empty() || operation_ == place.operation) &&
         (!pattern_ || pattern_->matches_name(place.name));
}

bool Breakpoint::has_expert(std::span<const std::int32_t> experts) const {
  return std::ranges::contains(experts, *expert_);
}

bool Breakpoint::holds(const OutputStatistics& of) const {
  const double value = condition_->number != nullptr ? of.*condition_->number
                                                     : static_cast<double>(of.*condition_->count);
  return condition_->greater ? value > condition_->bound : value < condition_->bound;
}

std::expected<std::vector<Breakpoint>, std::string> parse_breakpoints(
    std::span<const std::string> texts) {
  if (texts.size() > kMaxBreakpoints) {
    return wrong(std::format("There are {} breakpoints; at most {} are allowed.", texts.size(),
                             kMaxBreakpoints));
  }
  std::vector<Breakpoint> all;
  for (const std::string& text : texts) {
    auto one = Breakpoint::parse(text);
    if (!one) return wrong(std::move(one.error()));
    all.push_back(*std::move(one));
  }
  return all;
}

}  // namespace tt
