#include "analysis/aggregate/step_times.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <unordered_map>
#include <utility>

#include "analysis/aggregate/raster.h"
#include "analysis/common/verdict_counts.h"

namespace tt {

namespace {

// Limit the memory: the cells of one raster, and the values that are sorted at once.
constexpr std::size_t kMaxCells = std::size_t{1} << 22, kMaxValues = std::size_t{1} << 24;

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

// The time of each timed step in which a row has one. `query.y` has the axis, `query.x` the steps.
std::expected<std::vector<std::vector<Ns>>, TraceError> times_of(const SessionIndex& index,
                                                                 const TimedSteps& timed,
                                                                 RasterQuery query,
                                                                 std::span<const WantedRow> rows,
                                                                 const ContinueCheck& keep_going) {
  std::vector<std::vector<Ns>> times(rows.size());
  const std::int64_t first = rows.front().row, end = rows.back().row + 1;
  query.y.range = {first, end};
  const std::size_t steps = index.steps().size();
  const std::size_t width =
      std::max<std::size_t>(1, kMaxCells / static_cast<std::size_t>(end - first));
  for (std::size_t from = 0; from < steps; from += width) {
    const std::size_t to = std::min(from + width, steps);
    query.x.range = {static_cast<std::int64_t>(from), static_cast<std::int64_t>(to)};
    query.x.pixels = static_cast<std::uint32_t>(to - from);
    const auto part = raster(index, query, keep_going);
    if (!part) return std::unexpected(part.error());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t cells = static_cast<std::size_t>(rows[i].row - first) * part->x.pixels;
      for (std::size_t step = from; step < to; ++step) {
        const double ns = part->cells[cells + step - from];
        if (ns > 0 && timed.is_used(index, step)) times[i].push_back(Ns{std::llround(ns)});
      }
    }
  }
  return times;
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

std::expected<std::vector<std::optional<StepTimes>>, TraceError> step_times(
    const SessionIndex& index, Axis by, TraceFilter filter, std::span<const std::int64_t> keys,
    const ContinueCheck& keep_going) {
  std::vector<std::optional<StepTimes>> out(keys.size());
  const TimedSteps timed = timed_steps(index, filter);
  filter.phase = timed.phase;
  const RasterQuery query{.x = {.axis = Axis::Step, .range = Range<std::int64_t>{0, 0}},
                          .y = {.axis = by, .pixels = UINT32_MAX},
                          .value = Value::Time,
                          .filter = std::move(filter)};
  const auto axis = raster(index, query, keep_going);
  if (!axis) return std::unexpected(axis.error());
  const std::vector<WantedRow> rows = rows_of(keys, axis->y.keys);
  const std::size_t at_once =
      std::max<std::size_t>(1, kMaxValues / std::max<std::size_t>(1, index.steps().size()));
  for (std::size_t from = 0; from < rows.size(); from += at_once) {
    const auto some = std::span(rows).subspan(from, std::min(at_once, rows.size() - from));
    auto times = times_of(index, timed, query, some, keep_going);
    if (!times) return std::unexpected(times.error());
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto steps = static_cast<std::uint32_t>((*times)[i].size());
      double sum = 0;
      for (const Ns ns : (*times)[i]) sum += static_cast<double>(ns.v);
      if (const auto spread = spread_of(std::move((*times)[i])))
        out[some[i].key] = StepTimes{
            .steps = steps, .spread = *spread, .per_token = timed.per_token(sum, spread->median)};
    }
  }
  return out;
}

}  // namespace tt
