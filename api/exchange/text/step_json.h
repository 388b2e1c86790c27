// A step as the JSON of the log and of the run folder.
#pragma once

#include <cstdint>
#include <expected>

#include "api/exchange/rows/session_rows.h"
#include "api/json/json.h"

namespace tt::exchange {

struct StepTotals {
  std::uint64_t accesses = 0, read = 0, written = 0;  // bytes
  void add(const StepAccess& access) {
    ++accesses;
    (access.write ? written : read) += access.touched.v;
  }
  void add_to(Json& json) const;
};

// What is known before the step's accesses, and behind them. `graph` may be null.
Json step_begin_json(const Step& step, const RowTemplate* graph);
Json step_end_json(const Step& step, const StepTotals& totals);

// Tokens up to those that `step` evaluates, from number `shown` on, which moves on:
// every token comes once, before or with the step that evaluates it.
std::expected<Json, TraceError> new_tokens(const SessionReader& reader, const Step& step,
                                           std::uint32_t& shown);
// Those that no step evaluated: the last one that was generated, as a rule. None
// where the rows are of some steps only.
std::expected<Json, TraceError> other_tokens(const SessionRows& rows, std::uint32_t shown);

}  // namespace tt::exchange
