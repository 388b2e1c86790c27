#include "analysis/aggregate/step_times.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <format>
#include <unordered_map>
#include <utility>

#include "analysis/aggregate/series_layout.h"
#include "analysis/aggregate/step_shares.h"
#include "analysis/common/verdict_counts.h"

namespace tt {

namespace {

// Limits the memory: the times that are kept at once.
constexpr std::size_t kMaxValues = std::size_t{1} << 22;

// A row, its axis, and the index of its key among those of the axis.
struct WantedRow {
  std::size_t axis = 0, row = 0, key = 0;
};

// The times of the rows of one axis in a step.
class AxisTimes {
 public:
  // The arguments outlive the object.
  AxisTimes(const SessionIndex& index, Axis by, const TraceMatcher& matcher,
            std::optional<Phase> phase)
      : axis_(index, by, matcher, phase),
        rows_{&axis_, AxisScale({0, axis_.size()}, UINT32_MAX)},
        layouts_(index, step_, rows_, Value::Time, matcher),
        cells_(axis_.keys().size()) {}
  AxisTimes(const AxisTimes&) = delete;
  AxisTimes& operator=(const AxisTimes&) = delete;

  // Appends those of the keys that the axis has, in ascending order of rows. `number`: of the axis.
  void find(std::span<const std::int64_t> keys, std::size_t number,
            std::vector<WantedRow>& rows) const {
    std::unordered_map<std::int64_t, std::size_t> places;
    for (std::size_t i = 0; i < keys.size(); ++i) places.emplace(keys[i], i);
    const auto all = axis_.keys();
    for (std::size_t row = 0; row < all.size(); ++row)
      if (const auto found = places.find(all[row]); found != places.end())
        rows.push_back({.axis = number, .row = row, .key = found->second});
  }
  // Replaces the times by those of a step. Returns that of everything, also of what is in no row.
  double set(const SeriesShare& step) {
    std::ranges::fill(cells_, 0);
    double total = 0;
    layouts_.add(step, cells_, total);
    return total;
  }
  double of(std::size_t row) const { return cells_[row]; }

 private:
  const AxisRows axis_;
  const PlacedAxis step_, rows_;  // one step at a time: a single column
  SeriesLayouts layouts_;
  std::vector<double> cells_;
};

void keep(double ns, std::vector<Ns>& times) {
  if (ns > 0) times.push_back(Ns{std::llround(ns)});
}

std::optional<StepTimes> summary_of(const TimedSteps& timed, std::vector<Ns> times) {
  const auto steps = static_cast<std::uint32_t>(times.size());
  double sum = 0;
  for (const Ns ns : times) sum += static_cast<double>(ns.v);
  const auto spread = spread_of(std::move(times));
  if (!spread) return std::nullopt;
  return StepTimes{
      .steps = steps, .spread = *spread, .per_token = timed.per_token(sum, spread->median)};
}

}  // namespace

Ns TimedSteps::per_token(double sum_ns, Ns median) const {
  if (tokens == 0 || used == 0) return {};
  const double each = same_tokens ? static_cast<double>(median.v) * used : sum_ns;
  return Ns{std::llround(each / static_cast<double>(tokens))};
}

bool TimedSteps::is_used(const SessionIndex& index, std::size_t number) const {
  const IndexedStep& step = index.steps()[number];
  return step.phase == phase && (step.timed || whole) && step.is_normal() &&
         (uses_first || number > 0) && (uses_disturbed || !is_disturbed(step.verdict));
}

Phase ranked_phase(const SessionIndex& index, const TraceFilter& filter) {
  if (filter.phase) return *filter.phase;
  const auto& steps = index.steps();
  return !steps.empty() && !std::ranges::contains(steps, Phase::Generate, &IndexedStep::phase)
             ? steps.front().phase
             : Phase::Generate;
}

namespace {

TimedSteps choose_steps(const SessionIndex& index, Phase phase, Range<std::uint64_t> range,
                        bool whole) {
  TimedSteps out{.phase = phase, .whole = whole, .verdict = std::nullopt};
  const std::uint64_t end = std::min<std::uint64_t>(range.to, index.steps().size());
  VerdictCounts verdicts;
  for (std::uint64_t i = range.from; i < end; ++i) {
    const IndexedStep& step = index.steps()[i];
    if (step.phase != out.phase || (!step.timed && !whole)) continue;
    if (step.learned) {
      ++out.learned;
    } else if (!step.is_normal()) {
      ++out.interrupted;
    } else if (i == 0) {
      ++out.first;
    } else {
      verdicts.add(step.verdict);
    }
  }
  out.used = verdicts.undisturbed();
  out.disturbed = verdicts.disturbed();
  out.verdict = verdicts.of_undisturbed();
  if (out.used == 0 && out.disturbed > 0) {
    out.uses_disturbed = true;
    out.used = std::exchange(out.disturbed, 0);
    out.verdict = verdicts.of_disturbed();
  } else if (out.used == 0 && out.first > 0) {
    out.uses_first = out.uses_disturbed = true;
    out.used = std::exchange(out.first, 0);
    out.verdict = index.steps()[0].verdict;
  }
  std::optional<std::uint32_t> each;
  for (std::uint64_t i = range.from; i < end; ++i) {
    if (!out.is_used(index, i)) continue;
    const std::uint32_t tokens = index.steps()[i].n_tokens;
    out.tokens += tokens;
    out.same_tokens = out.same_tokens && each.value_or(tokens) == tokens;
    each = tokens;
  }
  return out;
}

}  // namespace

TimedSteps timed_steps(const SessionIndex& index, const TraceFilter& filter) {
  return choose_steps(index, ranked_phase(index, filter),
                      filter.steps.value_or(Range<std::uint64_t>{0, index.steps().size()}), false);
}

TimedSteps counted_steps(const SessionIndex& index, Phase phase) {
  const TimedSteps timed = timed_steps(index, {.phase = phase});
  if (timed.used + timed.left_out() > 0) return timed;
  return choose_steps(index, phase, {0, index.steps().size()}, true);
}

CountedTimes counted_times(const SessionIndex& index, Phase phase) {
  CountedTimes times{.steps = counted_steps(index, phase), .spread = std::nullopt};
  std::vector<Ns> durations;
  for (std::size_t i = 0; i < index.steps().size(); ++i) {
    const IndexedStep& step = index.steps()[i];
    // A damaged file may have any numbers.
    if (times.steps.is_used(index, i) && step.end >= step.begin)
      durations.push_back(step.end - step.begin);
  }
  if (const auto summary = summary_of(times.steps, std::move(durations))) {
    times.spread = summary->spread;
    times.per_token = summary->per_token;
  }
  return times;
}

std::optional<double> bytes_per_token(const SessionIndex& index, Phase phase) {
  double bytes = 0, tokens = 0;
  for (const IndexedStep& step : index.steps()) {
    if (step.phase != phase || step.left_out) continue;
    bytes += static_cast<double>(step.totals.read.v);
    tokens += step.n_tokens;
  }
  return tokens > 0 ? std::optional(bytes / tokens) : std::nullopt;
}

std::string to_text(const TimedSteps& steps) {
  std::string text =
      steps.used == 0
          ? std::format("Times: no {} step has a time of the model", to_text(steps.phase))
          : std::format("Times: median of {} {} step{}", steps.used, to_text(steps.phase),
                        steps.used == 1 ? "" : "s");
  if (steps.uses_first) text += ", the first of the session";
  std::string others;
  for (const auto& [count, why] :
       {std::pair{steps.learned, "learned"}, std::pair{steps.interrupted, "interrupted"},
        std::pair{steps.first, "first"}, std::pair{steps.disturbed, "disturbed"}})
    if (count > 0) others += std::format("{}{} {}", others.empty() ? "" : ", ", count, why);
  if (!others.empty()) text += "; left out: " + others;
  if (steps.used == 0)
    return text + (steps.learned == 0
                       ? "."
                       : ". The recording slows down the step in which a graph appears first: to "
                         "know the time, run another prompt while the model stays loaded.");
  text += std::format(". Verdict: {}", steps.verdict ? to_text(*steps.verdict) : "not recorded");
  if (steps.uses_disturbed && steps.verdict && *steps.verdict != Verdict::Clean)
    text += ": the times are not those of the model alone";
  return text + ".";
}

std::expected<RowStepTimes, TraceError> step_times(const SessionIndex& index,
                                                   std::span<const KeysOfAxis> axes,
                                                   TraceFilter filter,
                                                   const ContinueCheck& keep_going) {
  const TimedSteps timed = timed_steps(index, filter);
  filter.phase = timed.phase;
  const TraceMatcher matcher(index, filter);
  RowStepTimes out;
  std::vector<WantedRow> rows;
  std::deque<AxisTimes> of_axes;
  for (const KeysOfAxis& asked : axes) {
    of_axes.emplace_back(index, asked.by, matcher, filter.phase)
        .find(asked.keys, out.rows.size(), rows);
    out.rows.emplace_back(asked.keys.size());
  }
  StepShares shares(index, filter.phase, StepShares::Times::Yes);
  const StepWindow all = window_of(index, filter);
  const std::size_t at_once =
      std::max<std::size_t>(1, kMaxValues / std::max<std::size_t>(1, timed.used));
  std::size_t from = 0;
  do {  // also without rows, for the total
    const auto some = std::span(rows).subspan(from, std::min(at_once, rows.size() - from));
    std::vector<std::vector<Ns>> times(some.size());
    std::vector<Ns> totals;
    // Rows are ordered by axis. Without rows, the first axis gives the total.
    const std::size_t first = some.empty() ? 0 : some.front().axis;
    const std::size_t last = some.empty() ? 0 : some.back().axis;
    StepWindow window = all;
    for (std::uint64_t i = all.steps.from; i < all.steps.to; ++i) {
      if (i % 16 == 0 && !keep_going()) return std::unexpected(cancelled_error());
      if (!timed.is_used(index, static_cast<std::size_t>(i))) continue;
      window.steps = {i, i + 1};
      double total = 0;
      shares.visit(window, [&](const SeriesShare& step) {
        for (std::size_t axis = first; axis <= last; ++axis) total = of_axes[axis].set(step);
      });
      if (total <= 0) continue;
      if (from == 0) keep(total, totals);
      for (std::size_t k = 0; k < some.size(); ++k)
        keep(of_axes[some[k].axis].of(some[k].row), times[k]);
    }
    if (from == 0) out.total = summary_of(timed, std::move(totals));
    for (std::size_t k = 0; k < some.size(); ++k)
      out.rows[some[k].axis][some[k].key] = summary_of(timed, std::move(times[k]));
    from += some.size();
  } while (from < rows.size());
  if (!out.total || out.total->spread.median.v <= 0) return out;
  const auto whole = static_cast<double>(out.total->spread.median.v);
  const auto set_share = [&](StepTimes& of) {
    of.share = static_cast<double>(of.spread.median.v) / whole;
  };
  set_share(*out.total);
  for (auto& rows_of_axis : out.rows)
    for (auto& row : rows_of_axis)
      if (row) set_share(*row);
  return out;
}

}  // namespace tt
