// What the rows of an axis cost in one step of one phase. Sums over steps depend on the length of a
// run and on its few slow steps, and a step of the prompt is not one of generation; so rows are
// ranked and compared by these figures. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "analysis/aggregate/breakdown.h"

namespace tt {

struct StepCost {
  std::string name;
  std::int64_t key = 0;  // as BreakdownRow::key
  // Counts: the mean over StepCosts::steps. Time: the median over StepCosts::timed in which the row
  // has time; 0: it has none in these.
  TraceSums sums;
  double token_ns = 0;  // StepTimes::per_token; 0: as above
  double share = 0;     // StepTimes::share; 0: as above
};

// "-": no step of the phase has a time of the model, such as the first prompt, which was learned.
std::string step_time_text(double ns);

struct StepCosts {
  Phase phase = Phase::Generate;
  double steps = 0;  // with accesses; a step of which a part passes the filter counts as this part
  TimedSteps timed;
  TraceSums total;  // as StepCost::sums, of everything that passes the filter
  double total_token_ns = 0;
  std::vector<StepCost> rows;
};

// By axis; none of them is temporal or of bytes. The phase is ranked_phase() of the filter.
using CostsByAxis = std::map<Axis, StepCosts>;
std::expected<CostsByAxis, TraceError> step_costs(const SessionIndex& index,
                                                  std::span<const Axis> axes, TraceFilter filter,
                                                  const ContinueCheck& keep_going = never_cancel);
// The same for one axis.
std::expected<StepCosts, TraceError> step_costs(const SessionIndex& index, Axis by,
                                                TraceFilter filter,
                                                const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
