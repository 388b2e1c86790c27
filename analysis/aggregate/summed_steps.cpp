#include "analysis/aggregate/summed_steps.h"

#include <vector>

#include "analysis/aggregate/step_shares.h"
#include "analysis/common/verdict_counts.h"
#include "analysis/fields/fields.h"

namespace tt {

Fields<SummedSteps> fields_of(const SummedSteps*) {
  return Fields<SummedSteps>("SummedSteps")
      .add("all_steps", "number of steps, also of those without times", &SummedSteps::all)
      .add("tokens", "that these steps evaluate", &SummedSteps::tokens)
      .add("last_step", "the last of these steps", &SummedSteps::last, {.null = "there is none"})
      .add("steps", "number of steps with times", &SummedSteps::steps)
      .add("learned", "among them: their graph was new", &SummedSteps::learned)
      .add("disturbed", "among them: their verdict is not clean", &SummedSteps::disturbed)
      .add("verdict", "clean, or the most frequent one of the disturbed steps",
           &SummedSteps::verdict, {.null = "not recorded"});
}

SummedSteps summed_steps(const SessionIndex& index, std::span<const TraceFilter> filters) {
  std::vector<bool> summed(index.steps().size());
  for (const TraceFilter& filter : filters)
    StepShares(index, filter.phase, StepShares::Times::No)
        .visit(window_of(index, filter), [&](const SeriesShare& share) {
          for (std::size_t i = share.from; i < share.to; ++i) summed[share.series.steps[i]] = true;
        });
  SummedSteps out;
  VerdictCounts verdicts;
  for (std::size_t i = 0; i < index.steps().size(); ++i) {
    const IndexedStep& step = index.steps()[i];
    if (!summed[i]) continue;
    ++out.all;
    out.tokens += step.n_tokens;
    out.last = StepId{static_cast<std::uint32_t>(i)};
    if (!step.timed) continue;
    ++out.steps;
    out.learned += step.learned ? 1 : 0;
    verdicts.add(step.verdict);
  }
  out.disturbed = verdicts.disturbed();
  out.verdict = out.disturbed > 0 ? verdicts.of_disturbed() : verdicts.of_undisturbed();
  return out;
}

}  // namespace tt
