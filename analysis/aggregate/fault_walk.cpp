#include "analysis/aggregate/fault_walk.h"

#include <algorithm>

namespace tt {

namespace {

// Clips `of` to the range; returns the fraction of `of` that is left.
template <class T>
double clip(Range<T>& of, const std::optional<Range<T>>& range) {
  if (!range) return 1;
  const auto length = [&] { return static_cast<double>(of.to) - static_cast<double>(of.from); };
  const double all = length();
  of = {std::max(of.from, range->from), std::min(of.to, range->to)};
  return of.from < of.to ? length() / all : 0;
}

// An empty interval counts as 1 ns.
Range<std::int64_t> from_to(Ns begin, Ns end) {
  if (end > begin) return {begin.v, end.v};
  return begin.v < INT64_MAX ? Range{begin.v, begin.v + 1} : Range{begin.v - 1, begin.v};
}

bool passes(const TraceMatcher& matcher, const Series* series, const FaultLocation& place) {
  const bool has_op = series != nullptr && place.op != kNone;
  const bool has_access = series != nullptr && place.access != kNone;
  return (has_op ? matcher.op(series->outline->ops[place.op]) : !matcher.about_ops()) &&
         (has_access ? matcher.access(series->outline->accesses[place.access])
                     : !matcher.about_accesses());
}

}  // namespace

std::expected<void, TraceError> for_each_fault(const SessionIndex& index, const StepWindow& window,
                                               std::optional<Phase> phase,
                                               const TraceMatcher& matcher,
                                               const ContinueCheck& keep_going,
                                               const std::function<void(const FaultShare&)>& row) {
  constexpr std::size_t kCheckInterval = 4096;
  const auto& faults = index.faults();
  const auto first =
      std::ranges::lower_bound(faults, window.steps.from, {}, &IndexedFault::step) - faults.begin();
  for (auto i = static_cast<std::size_t>(first); i < faults.size(); ++i) {
    const IndexedFault& entry = faults[i];
    if (entry.step >= window.steps.to) break;
    if (i % kCheckInterval == 0 && !keep_going()) return std::unexpected(cancelled_error());
    const IndexedStep& step = index.steps()[entry.step];
    const Series* series = step.series == kNone ? nullptr : &index.series()[step.series];
    if ((phase && step.phase != *phase) || !passes(matcher, series, entry.place)) continue;
    FaultShare share{.entry = entry,
                     .step = step,
                     .series = series,
                     .count = static_cast<double>(entry.count),
                     .tokens = {token_begin(step), token_end(step)},
                     .time = entry.has_details ? from_to(entry.fault.at, entry.fault.at)
                                               : from_to(step.begin, step.end)};
    share.count *= clip(share.tokens, window.tokens) * clip(share.time, window.time);
    if (share.count > 0) row(share);
  }
  return {};
}

}  // namespace tt
