#include "analysis/aggregate/read_rates.h"

#include <algorithm>

#include "analysis/common/verdict_counts.h"

namespace tt {

ReadRates read_rates(const SessionIndex& index) {
  ReadRates rates;
  for (std::uint32_t i = 0; i < index.steps().size(); ++i) {
    const IndexedStep& step = index.steps()[i];
    if (step.phase != Phase::Generate || step.series == kNone || !step.timed || !step.is_normal() ||
        step.op_ns == 0)
      continue;
    const double rate =
        static_cast<double>(step.totals.read.v) * 1e9 / static_cast<double>(step.op_ns);
    rates.fastest = std::max(rates.fastest, rate);
    rates.last_step = StepId{i};
    if (!is_disturbed(step.verdict)) rates.clean.push_back(rate);
  }
  std::ranges::sort(rates.clean);
  return rates;
}

bool exceeds(double fastest_rate, const MachineBounds& bounds) {
  return bounds.read_bandwidth > 0 && fastest_rate > kFasterThanMemory * bounds.read_bandwidth;
}

MachineBounds session_bounds(const SessionIndex& index, std::uint64_t threads) {
  MachineBounds bounds = machine_bounds(index.info(), threads);
  if (!exceeds(read_rates(index).fastest, bounds)) return bounds;
  std::uint64_t weights = 0;
  for (const SessionTensor& tensor : index.names().tensors())
    if (tensor.kind == TensorKind::Weight) weights += tensor.size.v;
  if (weights <= bounds.last_cache) return bounds;
  bounds.read_bandwidth = 0;
  bounds.no_read_bandwidth = "exceeded";
  return bounds;
}

}  // namespace tt
