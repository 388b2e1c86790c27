// The page faults of a session that a question is about.
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

// The part of an entry of the index that lies in a window.
struct FaultShare {
  const IndexedFault& entry;
  const IndexedStep& step;
  const Series* series;  // null: the step has no accesses
  double count;
  // Over which it spreads: tokens of the step evenly; time, too, where it is not told.
  Stretch<std::uint64_t> tokens;
  Stretch<std::int64_t> time;
};

// What passes the filters on phases, ops and accesses, by step, then time. Cancelled
// where `keep_going`, asked now and then, says so.
std::expected<void, TraceError> for_each_fault(const SessionIndex& index, const StepWindow& window,
                                               std::optional<Phase> phase, const TracePicks& picks,
                                               const KeepGoing& keep_going,
                                               const std::function<void(const FaultShare&)>& row);

}  // namespace tt
