#include "analysis/aggregate/summed_steps.h"

#include <algorithm>
#include <map>
#include <vector>

#include "analysis/aggregate/step_shares.h"
#include "analysis/fields/fields.h"

namespace tt {

const Fields<SummedSteps>& fields_of(const SummedSteps*) {
  static const auto fields =
      Fields<SummedSteps>("SummedSteps")
          .add("steps", "number of steps with times", &SummedSteps::steps)
          .add("learned", "among them: their graph was new", &SummedSteps::learned)
          .add("disturbed", "among them: their verdict is not clean", &SummedSteps::disturbed)
          .add("verdict", "clean, or the most frequent one of the disturbed steps",
               &SummedSteps::verdict, {.null = "not recorded"});
  return fields;
}

SummedSteps summed_steps(const SessionIndex& index, std::span<const TraceFilter> filters) {
  std::vector<bool> summed(index.steps().size());
  for (const TraceFilter& filter : filters)
    StepShares(index, filter.phase, StepShares::Times::No)
        .visit(window_of(index, filter), [&](const SeriesShare& share) {
          for (std::size_t i = share.from; i < share.to; ++i) summed[share.series.steps[i]] = true;
        });
  SummedSteps out;
  std::map<Verdict, std::uint32_t> disturbed;
  for (std::size_t i = 0; i < index.steps().size(); ++i) {
    const IndexedStep& step = index.steps()[i];
    if (!summed[i] || !step.timed) continue;
    ++out.steps;
    out.learned += step.learned ? 1 : 0;
    if (!step.verdict) continue;
    out.verdict = Verdict::Clean;
    if (*step.verdict == Verdict::Clean) continue;
    ++out.disturbed;
    ++disturbed[*step.verdict];
  }
  if (!disturbed.empty())
    out.verdict =
        std::ranges::max_element(disturbed, {}, [](const auto& of) { return of.second; })->first;
  return out;
}

}  // namespace tt
