// Iteration over the page faults of a session that pass a filter.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>

#include "analysis/aggregate/axis_rows.h"
#include "analysis/aggregate/step_shares.h"
#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/page.h"
#include "analysis/index/session_index.h"

namespace tt {

// The part of an index entry that is inside a window.
struct FaultShare {
  const IndexedFault& entry;
  const IndexedStep& step;
  const Series* series;  // null: the step has no accesses
  double count;
  // The ranges over which the count is distributed evenly: the tokens of the step, and the
  // time of the fault, or of the step if the time of the fault is unknown.
  Range<std::uint64_t> tokens;
  Range<std::int64_t> time;
};

// Calls `row` for every fault that passes the filters on phase, ops and accesses, ordered by
// step, then time. Returns Cancelled if `keep_going`, called periodically, returns false.
std::expected<void, TraceError> for_each_fault(const SessionIndex& index, const StepWindow& window,
                                               std::optional<Phase> phase,
                                               const TraceMatcher& matcher,
                                               const ContinueCheck& keep_going,
                                               const std::function<void(const FaultShare&)>& row);

}  // namespace tt
