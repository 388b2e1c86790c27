#include "analysis/aggregate/step_costs.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"

namespace tt {

std::string step_time_text(double ns) { return ns > 0 ? format_duration(ns) : "-"; }

std::expected<CostsByAxis, TraceError> step_costs(const SessionIndex& index,
                                                  std::span<const Axis> axes, TraceFilter filter,
                                                  const ContinueCheck& keep_going) {
  const Phase phase = ranked_phase(index, filter);
  filter.phase = phase;
  const double steps = counted_share(index, filter, phase);
  std::vector<Breakdown> sums;
  std::vector<KeysOfAxis> asked;
  for (const Axis by : axes) {
    auto of = breakdown(index, {.by = by, .filter = filter}, keep_going);
    if (!of) return std::unexpected(of.error());
    asked.push_back({.by = by, .keys = keys_of(of->rows)});
    sums.push_back(*std::move(of));
  }
  const auto times = step_times(index, asked, filter, keep_going);
  if (!times) return std::unexpected(times.error());

  const auto in_a_step = [&](const BreakdownRow& row, const std::optional<StepTimes>& step) {
    TraceSums cost = steps > 0 ? row.all / steps : TraceSums{};
    cost.time_ns = step ? static_cast<double>(step->spread.median.v) : 0;
    return cost;
  };
  const auto per_token = [](const std::optional<StepTimes>& step) {
    return step ? static_cast<double>(step->per_token.v) : 0;
  };
  CostsByAxis out;
  for (std::size_t axis = 0; axis < sums.size(); ++axis) {
    StepCosts costs{.phase = phase,
                    .steps = steps,
                    .timed = timed_steps(index, filter),
                    .total = in_a_step(sums[axis].total, times->total),
                    .total_token_ns = per_token(times->total),
                    .rows = {}};
    for (std::size_t i = 0; i < sums[axis].rows.size(); ++i) {
      BreakdownRow& row = sums[axis].rows[i];
      const std::optional<StepTimes>& step = times->rows[axis][i];
      costs.rows.push_back({.name = std::move(row.name),
                            .key = row.key,
                            .sums = in_a_step(row, step),
                            .token_ns = per_token(step),
                            .share = step ? step->share : 0});
    }
    out.emplace(axes[axis], std::move(costs));
  }
  return out;
}

std::expected<StepCosts, TraceError> step_costs(const SessionIndex& index, Axis by,
                                                TraceFilter filter,
                                                const ContinueCheck& keep_going) {
  const std::array axes = {by};
  return step_costs(index, axes, std::move(filter), keep_going).transform([&](CostsByAxis costs) {
    return std::move(costs.at(by));
  });
}

}  // namespace tt
