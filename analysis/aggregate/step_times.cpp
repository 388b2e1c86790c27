#include "analysis/aggregate/step_times.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <functional>
#include <unordered_map>
#include <utility>

#include "analysis/aggregate/series_layout.h"
#include "analysis/aggregate/step_shares.h"
#include "analysis/common/verdict_counts.h"

namespace tt {

namespace {

// Limits the memory: the times that are kept at once.
constexpr std::size_t kMaxValues = std::size_t{1} << 23;

// A row of the axis, and the index of its key in the query.
struct WantedRow {
  std::int64_t row = 0;
  std::size_t key = 0;
};

// Ascending rows; keys without a row are missing.
std::vector<WantedRow> rows_of(std::span<const std::int64_t> keys,
                               std::span<const std::int64_t> axis) {
  std::unordered_map<std::int64_t, std::size_t> places;
  for (std::size_t i = 0; i < keys.size(); ++i) places.emplace(keys[i], i);
  std::vector<WantedRow> rows;
  for (std::size_t row = 0; row < axis.size(); ++row)
    if (const auto found = places.find(axis[row]); found != places.end())
      rows.push_back({.row = static_cast<std::int64_t>(row), .key = found->second});
  return rows;
}

// The times of the rows of an axis in each timed step.
class RowTimes {
 public:
  // The arguments outlive the object. The phase of the filter is that of the timed steps.
  RowTimes(const SessionIndex& index, const TimedSteps& timed, Axis by, const TraceFilter& filter)
      : index_(index),
        timed_(timed),
        matcher_(index, filter),
        axis_(index, by, matcher_, filter.phase),
        rows_{&axis_, AxisScale({0, axis_.size()}, UINT32_MAX)},
        window_(window_of(index, filter)),
        shares_(index, filter.phase, StepShares::Times::Yes),
        layouts_(index, steps_, rows_, Value::Time, matcher_),
        cells_(axis_.keys().size()) {}

  std::span<const std::int64_t> keys() const { return axis_.keys(); }

  // Calls `step` for each timed step with a time: with that of everything, and those of the rows.
  Status for_each(const ContinueCheck& keep_going,
                  const std::function<void(double, std::span<const double>)>& step) {
    StepWindow window = window_;
    for (std::uint64_t i = window_.steps.from; i < window_.steps.to; ++i) {
      if (i % 16 == 0 && !keep_going()) return std::unexpected(cancelled_error());
      if (!timed_.is_used(index_, static_cast<std::size_t>(i))) continue;
      window.steps = {i, i + 1};
      double total = 0;
      std::ranges::fill(cells_, 0);
      shares_.visit(window, [&](const SeriesShare& share) { layouts_.add(share, cells_, total); });
      if (total > 0) step(total, cells_);
    }
    return {};
  }

 private:
  const SessionIndex& index_;
  const TimedSteps& timed_;
  const TraceMatcher matcher_;
  const AxisRows axis_;
  const PlacedAxis steps_, rows_;  // one step at a time: a single column
  const StepWindow window_;
  StepShares shares_;
  SeriesLayouts layouts_;
  std::vector<double> cells_;  // of one step, per row
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
  if (steps.used == 0) return text + ".";
  text += std::format(". Verdict: {}", steps.verdict ? to_text(*steps.verdict) : "not recorded");
  if (steps.uses_disturbed && steps.verdict && *steps.verdict != Verdict::Clean)
    text += ": the times are not those of the model alone";
  return text + ".";
}

std::expected<RowStepTimes, TraceError> step_times(const SessionIndex& index, Axis by,
                                                   TraceFilter filter,
                                                   std::span<const std::int64_t> keys,
                                                   const ContinueCheck& keep_going) {
  RowStepTimes out{.rows = std::vector<std::optional<StepTimes>>(keys.size()), .total = {}};
  const TimedSteps timed = timed_steps(index, filter);
  filter.phase = timed.phase;
  RowTimes of_rows(index, timed, by, filter);
  const std::vector<WantedRow> rows = rows_of(keys, of_rows.keys());
  const std::size_t at_once =
      std::max<std::size_t>(1, kMaxValues / std::max<std::size_t>(1, timed.used));
  std::size_t from = 0;
  do {  // also without rows, for the total
    const auto some = std::span(rows).subspan(from, std::min(at_once, rows.size() - from));
    std::vector<std::vector<Ns>> times(some.size());
    std::vector<Ns> totals;
    const auto walked =
        of_rows.for_each(keep_going, [&](double total, std::span<const double> cells) {
          if (from == 0) keep(total, totals);
          for (std::size_t i = 0; i < some.size(); ++i)
            keep(cells[static_cast<std::size_t>(some[i].row)], times[i]);
        });
    if (!walked) return std::unexpected(walked.error());
    if (from == 0) out.total = summary_of(timed, std::move(totals));
    for (std::size_t i = 0; i < some.size(); ++i)
      out.rows[some[i].key] = summary_of(timed, std::move(times[i]));
    from += some.size();
  } while (from < rows.size());
  return out;
}

}  // namespace tt
