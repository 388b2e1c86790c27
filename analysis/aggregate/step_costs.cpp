#include "analysis/aggregate/step_costs.h"

#include <optional>
#include <utility>

#include "analysis/aggregate/step_shares.h"
#include "analysis/common/format_units.h"

namespace tt {

std::string step_time_text(double ns) { return ns > 0 ? format_duration(ns) : "-"; }

std::expected<StepCosts, TraceError> step_costs(const SessionIndex& index, Axis by,
                                                TraceFilter filter,
                                                const ContinueCheck& keep_going) {
  StepCosts costs{.phase = ranked_phase(index, filter), .timed = {}, .total = {}, .rows = {}};
  filter.phase = costs.phase;
  StepShares(index, filter.phase, StepShares::Times::No)
      .visit(window_of(index, filter),
             [&](const SeriesShare& share) { costs.steps += share.steps() * share.share; });
  auto sums =
      breakdown(index, {.by = by, .filter = std::move(filter), .step_times = true}, keep_going);
  if (!sums) return std::unexpected(sums.error());
  costs.timed = sums->times.value_or(TimedSteps{});
  const auto in_a_step = [&](const BreakdownRow& row) {
    TraceSums cost = costs.steps > 0 ? row.all / costs.steps : TraceSums{};
    cost.time_ns = row.step ? static_cast<double>(row.step->spread.median.v) : 0;
    return cost;
  };
  const auto per_token = [](const BreakdownRow& row) {
    return row.step ? static_cast<double>(row.step->per_token.v) : 0;
  };
  costs.total = in_a_step(sums->total);
  costs.total_token_ns = per_token(sums->total);
  for (BreakdownRow& row : sums->rows) {
    const TraceSums cost = in_a_step(row);
    const double token_ns = per_token(row);
    costs.rows.push_back(
        {.name = std::move(row.name), .key = row.key, .sums = cost, .token_ns = token_ns});
  }
  return costs;
}

}  // namespace tt
