// The time per step of the rows of an axis, with its spread: what a layer or a tensor costs in a
// usual step, which a sum over a session with a few slow steps does not show. Pure functions, any
// thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/page.h"
#include "analysis/common/spread.h"
#include "analysis/fields/declare.h"
#include "analysis/index/session_index.h"

namespace tt {

// Which steps of one phase have the times of the model. Left out are steps that were learned (a new
// graph), interrupted, the first of the session, or disturbed by the machine. If the first or the
// disturbed steps are the only ones, they are used, and the verdict says what they are worth.
struct TimedSteps {
  Phase phase = Phase::Generate;
  std::uint32_t used = 0;
  std::uint64_t tokens = 0;  // of the used steps
  bool same_tokens = true;   // whether each of the used steps has equally many
  std::uint32_t learned = 0, interrupted = 0, first = 0, disturbed = 0;  // left out
  bool uses_first = false, uses_disturbed = false;
  bool whole = false;              // of durations of steps, which need no times of ops
  std::optional<Verdict> verdict;  // of the used steps; nullopt: not recorded, or no steps

  bool is_used(const SessionIndex& index, std::size_t step) const;
  std::uint32_t left_out() const { return learned + interrupted + first + disturbed; }
  // The time per token of what took `sum_ns` in these steps and `median` in the median of them.
  // Steps of a prompt differ in their tokens: one of 20 says nothing about one of 512, so theirs is
  // the sum divided by the tokens. 0: they have no tokens.
  Ns per_token(double sum_ns, Ns median) const;
  friend bool operator==(const TimedSteps&, const TimedSteps&) = default;
};
// The phase whose times rank rows, because those of several phases cannot be compared: that of the
// filter; else generate, or that of the first step if the session generated nothing.
Phase ranked_phase(const SessionIndex& index, const TraceFilter& filter);
// Of ranked_phase() and of the range of steps of the filter. An empty phase: `used` is 0.
TimedSteps timed_steps(const SessionIndex& index, const TraceFilter& filter);
// The same for durations of whole steps: if no step of the phase has times of ops, of all its
// steps.
TimedSteps counted_steps(const SessionIndex& index, Phase phase);
// Durations of the counted_steps().
struct CountedTimes {
  TimedSteps steps;
  std::optional<Spread> spread;  // none: no step counts
  Ns per_token{};                // TimedSteps::per_token()
  friend bool operator==(const CountedTimes&, const CountedTimes&) = default;
};
CountedTimes counted_times(const SessionIndex& index, Phase phase);
// Bytes that the steps of a phase read, divided by its tokens; nullopt: it has none.
std::optional<double> bytes_per_token(const SessionIndex& index, Phase phase);
// "Times: median of 23 generate steps. Not in them: ... Verdict: ...", in one line.
std::string to_text(const TimedSteps& steps);
Fields<TimedSteps> fields_of(const TimedSteps*);

// Of the timed_steps() in which the row has time. An expert that few tokens use has few steps.
struct StepTimes {
  std::uint32_t steps = 0;
  Spread spread;
  Ns per_token{};    // TimedSteps::per_token()
  double share = 0;  // of the median of everything that passes the filter
  // Bytes read and written in the mean step of the phase, by the median; 0: not asked for.
  double bytes_per_second = 0;
  friend bool operator==(const StepTimes&, const StepTimes&) = default;
};

// Rows of an axis that is not temporal and not one of bytes, by AxisRows::keys().
struct KeysOfAxis {
  Axis by = Axis::Layer;
  std::vector<std::int64_t> keys;
};
struct RowStepTimes {
  // Per axis, in the order of its keys; nullopt: the row has time in no such step.
  std::vector<std::vector<std::optional<StepTimes>>> rows;
  std::optional<StepTimes> total;  // of everything that passes the filter
};

// `axes`: at least one; an axis may have no keys. The phase is ranked_phase(). The cost depends on
// the ops of all steps; several axes at once cost less than one after another, because the times of
// a step are decoded once.
std::expected<RowStepTimes, TraceError> step_times(const SessionIndex& index,
                                                   std::span<const KeysOfAxis> axes,
                                                   TraceFilter filter,
                                                   const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
