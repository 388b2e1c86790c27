// Where the time of steps went, by op kind; and what the machine did to them.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "analysis/common/verdict.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct OpKindTime {
  std::string op;  // as op_name(): "RMS_NORM+MUL" for a fused op
  double ns = 0;
  // The same if each step had taken the quiet time (quiet_time.h) of the steps with the same graph
  // and number of tokens.
  double quiet_ns = 0;
  std::uint64_t count = 0;
  friend bool operator==(const OpKindTime&, const OpKindTime&) = default;
};

struct StepsTime {
  std::vector<OpKindTime> ops;  // ordered by name
  ThreadTime conditions;
  std::uint64_t steps = 0;
  std::uint64_t steps_without_times = 0;
};

// Of steps [first, end).
std::expected<StepsTime, TraceError> time_of_steps(const SessionReader& reader, StepId first,
                                                   StepId end);

}  // namespace tt
