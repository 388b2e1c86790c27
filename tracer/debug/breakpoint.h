// Where a run stops: one line of text that the terminal, REST and the page share.
//
//   [watch] [before] [op NAME] [layer RANGE] [token RANGE] [step RANGE] [expert N] [PATTERN]
//     [if STATISTIC < NUMBER]
//
// All parts must hold; each may be given once, in any order, the condition last. PATTERN is
// searched for in the name of the op's output (NamePattern). A range is N, N-M or N-, from 0.
// Tokens are those of the session: a step has a token if it evaluates it. An expert is one to which
// a MUL_MAT_ID routes a token. `if nan` and `if inf` are short for `if nan > 0` and `if inf > 0`.
//
// Without `before`, the op has run and its output can be read. `watch` does not stop: each time,
// what the output is like is reported. docs/debug.md describes this for users.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/probe/index_range.h"
#include "tracer/probe/name_pattern.h"
#include "tracer/request/debug_state.h"

namespace tt {

// "step 0, op 57, layer 3: MUL_MAT Qcur-3".
std::string to_text(const OpPlace& place);
// The same op up to another step: "steps 1 to 7, op 57, layer 3: MUL_MAT Qcur-3".
std::string to_text(const OpPlace& place, StepId last_step);

class Breakpoint {
 public:
  // The error text is a sentence.
  static std::expected<Breakpoint, std::string> parse(const std::string& text);

  const std::string& text() const { return text_; }
  bool is_before() const { return before_; }
  bool is_watch() const { return watch_; }
  bool needs_experts() const { return expert_.has_value(); }
  bool needs_statistics() const { return condition_.has_value(); }

  // All parts but the expert and the condition.
  bool is_at(const OpPlace& place) const;
  bool has_expert(std::span<const std::int32_t> experts) const;
  bool holds(const OutputStatistics& of) const;

 private:
  struct Condition {
    double OutputStatistics::* number = nullptr;        // or
    std::uint64_t OutputStatistics::* count = nullptr;  // one of them
    bool greater = true;
    double bound = 0;
  };
  Breakpoint() = default;
  static std::expected<Condition, std::string> parse_condition(
      std::span<const std::string_view> words);

  std::string text_;
  bool watch_ = false, before_ = false;
  std::string operation_;  // empty: any
  std::optional<IndexRange> layers_;
  IndexRange tokens_, steps_;
  std::optional<std::int32_t> expert_;
  std::optional<NamePattern> pattern_;
  std::optional<Condition> condition_;
};

// All or none. The error text is a sentence about the first wrong one.
std::expected<std::vector<Breakpoint>, std::string> parse_breakpoints(
    std::span<const std::string> texts);

}  // namespace tt
