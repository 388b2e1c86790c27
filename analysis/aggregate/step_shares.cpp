#include "analysis/aggregate/step_shares.h"

#include <algorithm>

namespace tt {

namespace {

template <class T>
void intersect(std::optional<Range<T>>& a, const std::optional<Range<T>>& b) {
  if (!b) return;
  if (!a) a = b;
  a = {std::max(a->from, b->from), std::min(a->to, b->to)};
}

// The end of a step on the time axis; an empty step counts as 1 ns.
std::int64_t time_end(const IndexedStep& step) {
  return step.end > step.begin ? step.end.v : step.begin.v + (step.begin.v < INT64_MAX ? 1 : 0);
}

template <class T>
double overlap_fraction(T begin, T end, const Range<T>& range) {
  const T from = std::max(begin, range.from), to = std::min(end, range.to);
  if (from >= to) return 0;
  if (from == begin && to == end) return 1;
  return (static_cast<double>(to) - static_cast<double>(from)) /
         (static_cast<double>(end) - static_cast<double>(begin));
}

enum class Inside { No, Partly, Wholly };

template <class T>
Inside inside(T begin, T end, const std::optional<Range<T>>& range) {
  if (!range || (begin >= range->from && end <= range->to)) return Inside::Wholly;
  return begin < range->to && end > range->from ? Inside::Partly : Inside::No;
}

// Requires that begins and ends of the steps never decrease. Narrows `touched` to the steps
// that overlap the range, and `wholly` to those that are completely inside it.
template <class T, class Begin, class End>
void narrow(std::span<const IndexedStep> all, const std::optional<Range<T>>& range,
            Range<std::uint64_t>& touched, Range<std::uint64_t>& wholly, Begin begin, End end) {
  if (!range) return;
  const auto first = [&](auto is_before) {
    return static_cast<std::uint64_t>(std::ranges::partition_point(all, is_before) - all.begin());
  };
  const auto clip = [](Range<std::uint64_t>& s, std::uint64_t from, std::uint64_t to) {
    s = {std::max(s.from, from), std::min(s.to, to)};
  };
  clip(touched, first([&](const IndexedStep& s) { return end(s) <= range->from; }),
       first([&](const IndexedStep& s) { return begin(s) < range->to; }));
  clip(wholly, first([&](const IndexedStep& s) { return begin(s) < range->from; }),
       first([&](const IndexedStep& s) { return end(s) <= range->to; }));
}

}  // namespace

StepWindow window_of(const SessionIndex& index, const TraceFilter& filter) {
  StepWindow window{
      .steps = {0, index.steps().size()}, .tokens = filter.tokens, .time = filter.time};
  if (filter.steps) {
    window.steps.from = filter.steps->from;
    window.steps.to = std::min<std::uint64_t>(filter.steps->to, window.steps.to);
  }
  return window;
}

StepWindow within(StepWindow a, const StepWindow& b) {
  a.steps = {std::max(a.steps.from, b.steps.from), std::min(a.steps.to, b.steps.to)};
  intersect(a.tokens, b.tokens);
  intersect(a.time, b.time);
  return a;
}

std::size_t StepShares::place_at(std::uint32_t series, std::uint64_t step) {
  Place& last = places_[series];
  if (last.step == step) return last.place;
  const auto& steps = index_.series()[series].steps;
  const auto from =
      steps.begin() + (step > last.step ? static_cast<std::ptrdiff_t>(last.place) : 0);
  last.place = static_cast<std::size_t>(std::lower_bound(from, steps.end(), step) - steps.begin());
  last.step = step;
  return last.place;
}

void StepShares::whole(Range<std::uint64_t> steps, const Visit& visit) {
  for (std::uint32_t s = 0; s < index_.series().size(); ++s) {
    const Series& series = index_.series()[s];
    if (phase_ && series.phase != *phase_) continue;
    const std::size_t from = place_at(s, steps.from), to = place_at(s, steps.to);
    if (from == to) continue;
    std::span<const std::uint64_t> op_ns;
    if (times_ == Times::Yes) {
      op_ns = op_times_.between(s, from, to);
    }
    visit({series, s, from, to, 1, {}, op_ns, 0, series.ran});
  }
}

void StepShares::partly(std::uint32_t id, const StepWindow& window, const Visit& visit) {
  const IndexedStep& step = index_.steps()[id];
  if (step.series == kNone || (phase_ && step.phase != *phase_)) return;
  const Series& series = index_.series()[step.series];
  double share =
      window.tokens ? overlap_fraction(token_begin(step), token_end(step), *window.tokens) : 1;
  const bool cut = inside(step.begin.v, time_end(step), window.time) != Inside::Wholly;
  if (cut && !step.timed) share *= overlap_fraction(step.begin.v, time_end(step), *window.time);
  if (share == 0) return;
  SeriesShare out{series, step.series, step.place, std::size_t{step.place} + 1, share, {},
                  {},     0,           series.ran};
  if ((cut && step.timed) || times_ == Times::Yes) {
    out.op_ns = op_times_.of(step.series, step.place);
  }
  if (cut && step.timed) {
    op_shares_.assign(series.ran, 0);
    out.op_shares = op_shares_;
    out.first_op = out.end_op = 0;
    auto at = static_cast<std::uint64_t>(step.first_op.v);
    for (std::uint32_t op = 0; op < series.ran; ++op) {
      const auto begin = static_cast<std::int64_t>(at);
      const auto end = static_cast<std::int64_t>(at += out.op_ns[op]);
      // An op without a positive duration is located at its begin.
      const double part = end > begin ? overlap_fraction(begin, end, *window.time)
                                      : (window.time->contains(begin) ? 1 : 0);
      if (part == 0) continue;
      if (out.end_op == 0) out.first_op = op;
      out.end_op = op + 1;
      op_shares_[op] = part * share;
    }
    if (out.end_op == 0) return;
  }
  visit(out);
}

void StepShares::visit(const StepWindow& window, const Visit& visit) {
  const std::span<const IndexedStep> all = index_.steps();
  if (window.steps.from >= window.steps.to) return;
  const bool in_order =
      (!window.time || index_.in_time_order()) && (!window.tokens || index_.in_token_order());
  Range<std::uint64_t> touched = window.steps, wholly = window.steps;
  if (in_order) {
    narrow(
        all, window.time, touched, wholly, [](const IndexedStep& s) { return s.begin.v; },
        time_end);
    narrow(all, window.tokens, touched, wholly, token_begin, token_end);
    if (wholly.from >= wholly.to) wholly = {touched.to, touched.to};
  } else {
    wholly = {touched.to, touched.to};
  }
  for (std::uint64_t i = touched.from; i < touched.to; ++i) {
    // A single step is cheaper to look up directly than to search for in every series.
    if (i == wholly.from && wholly.to > wholly.from + 1) {
      whole(wholly, visit);
      i = wholly.to - 1;
      continue;
    }
    const IndexedStep& step = all[static_cast<std::size_t>(i)];
    if (inside(step.begin.v, time_end(step), window.time) == Inside::No ||
        inside(token_begin(step), token_end(step), window.tokens) == Inside::No)
      continue;
    partly(static_cast<std::uint32_t>(i), window, visit);
  }
}

}  // namespace tt
