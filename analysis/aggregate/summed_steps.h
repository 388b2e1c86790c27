// The steps that the sums of an answer are of, and what the machine did to their times. Pure, any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/fields/declare.h"
#include "analysis/index/session_index.h"

namespace tt {

struct SummedSteps {
  std::uint32_t all = 0;     // also those without times
  std::uint64_t tokens = 0;  // that these evaluate
  std::optional<StepId> last{};
  std::uint32_t steps = 0;  // with times
  // Among them: their times are not those of the model alone.
  std::uint32_t learned = 0, disturbed = 0;
  // Clean if no step is disturbed, else the most frequent one of the disturbed steps. nullopt: no
  // step has one.
  std::optional<Verdict> verdict;
  friend bool operator==(const SummedSteps&, const SummedSteps&) = default;
};
// The field of an answer that has them.
inline constexpr const char* kSummedSteps = "summed_steps";
Fields<SummedSteps> fields_of(const SummedSteps*);

// Those of which one of the filters lets a part pass; what a filter says of ops and tensors does
// not count.
SummedSteps summed_steps(const SessionIndex& index, std::span<const TraceFilter> filters);

}  // namespace tt
