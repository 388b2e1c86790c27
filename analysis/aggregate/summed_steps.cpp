#include "analysis/aggregate/summed_steps.h"

#include <algorithm>
#include <map>

#include "analysis/fields/fields.h"

namespace tt {

namespace {

bool passes(const IndexedStep& step, std::uint64_t number, const TraceFilter& filter) {
  if (filter.phase && step.phase != *filter.phase) return false;
  if (filter.steps && (number < filter.steps->from || number >= filter.steps->to)) return false;
  if (const auto& tokens = filter.tokens;
      tokens && (tokens->from >= tokens->to || token_end(step) <= tokens->from ||
                 token_begin(step) >= tokens->to))
    return false;
  return !filter.time || (step.end.v > filter.time->from && step.begin.v < filter.time->to);
}

}  // namespace

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
  SummedSteps out;
  std::map<Verdict, std::uint32_t> disturbed;
  for (std::uint64_t i = 0; i < index.steps().size(); ++i) {
    const IndexedStep& step = index.steps()[i];
    if (!step.timed || step.left_out ||
        std::ranges::none_of(filters,
                             [&](const TraceFilter& filter) { return passes(step, i, filter); }))
      continue;
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
