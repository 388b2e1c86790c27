// The time per step of the rows of an axis, with its spread: what a layer or a tensor costs in a
// usual step, which a sum over a session with a few slow steps does not show. Pure functions, any
// thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <vector>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/page.h"
#include "analysis/common/spread.h"
#include "analysis/index/session_index.h"

namespace tt {

// Of the normal steps (analysis/tables/session_conditions.h) of one phase in which the row has
// time. An expert that few tokens use has few steps.
struct StepTimes {
  std::uint32_t steps = 0;
  Spread spread;
  friend bool operator==(const StepTimes&, const StepTimes&) = default;
};

// For each key of `keys` (AxisRows::keys()), in this order; nullopt: no such step. `by` is not a
// temporal and not a byte axis. The phase is that of the filter, or generate. The cost depends on
// the ops of all steps.
std::expected<std::vector<std::optional<StepTimes>>, TraceError> step_times(
    const SessionIndex& index, Axis by, TraceFilter filter, std::span<const std::int64_t> keys,
    const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
