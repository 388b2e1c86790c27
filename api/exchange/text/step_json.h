// A step as JSON for the log and the run folder.
#pragma once

#include <cstdint>
#include <expected>

#include "api/exchange/rows/session_rows.h"
#include "api/json/json.h"

namespace tt::exchange {

struct StepTotals {
  std::uint64_t accesses = 0, read = 0, written = 0;  // bytes
  // `repeated`: an earlier row had the same access, for another token.
  void add(const StepAccess& access, bool repeated = false) {
    accesses += repeated ? 0 : 1;
    (access.write ? written : read) += access.touched.v;
  }
  void add_to(Json& json) const;
};

// The fields before and after the accesses of a step. `graph` may be null.
Json step_begin_json(const Step& step, const RowTemplate* graph);
Json step_end_json(const Step& step, const StepTotals& totals);

// Tokens from index `shown` up to those that `step` evaluates; advances `shown`. Every token
// is written once, before or with the step that evaluates it.
std::expected<Json, TraceError> new_tokens(const SessionReader& reader, const Step& step,
                                           std::uint32_t& next_token);
// Tokens that no step evaluated, usually the last generated one. Empty for a partial range.
std::expected<Json, TraceError> unevaluated_tokens(const SessionRows& rows,
                                                   std::uint32_t next_token);

}  // namespace tt::exchange
