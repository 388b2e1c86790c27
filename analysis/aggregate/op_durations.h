// How long ops take: a histogram of the durations of single executions. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <vector>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "analysis/index/session_index.h"

namespace tt {

// Durations of at least `from` and less than twice as much.
struct OpDurationBin {
  Ns from{};
  std::uint64_t executions = 0;
  Ns time{};  // of these
  friend bool operator==(const OpDurationBin&, const OpDurationBin&) = default;
};

struct OpDurations {
  std::uint64_t executions = 0;     // with a duration
  std::vector<OpDurationBin> bins;  // ascending, also the empty ones between others
  friend bool operator==(const OpDurations&, const OpDurations&) = default;
};

// An op of which a part is inside of a range counts as a whole.
std::expected<OpDurations, TraceError> op_durations(const SessionIndex& index,
                                                    const TraceFilter& filter,
                                                    const ContinueCheck& keep_going = never_cancel);

Fields<OpDurations> fields_of(const OpDurations*);

}  // namespace tt
