#include "analysis/aggregate/session_statistics.h"

#include <algorithm>
#include <set>
#include <span>
#include <vector>

namespace tt {

namespace {

// A range of steps of a series, with the number of steps and of touched parts.
struct SeriesSlice {
  const Series& series;
  std::size_t from = 0, to = 0;  // indices within the series
  std::uint64_t steps() const { return to - from; }
  std::uint64_t parts(std::uint32_t rule) const {
    return series.parts_before(to)[rule] - series.parts_before(from)[rule];
  }
  std::uint64_t hits(std::uint32_t rule) const {
    return series.hits_before(to)[rule] - series.hits_before(from)[rule];
  }
};

SeriesSlice slice_of(const Series& series, Range<std::uint64_t> steps) {
  const auto place = [&](std::uint64_t step) {
    return static_cast<std::size_t>(std::ranges::lower_bound(series.steps, step) -
                                    series.steps.begin());
  };
  return {.series = series, .from = place(steps.from), .to = place(steps.to)};
}

AccessSums sums_of(const SeriesSlice& slice, const OutlineAccess& access) {
  AccessSums sums;
  std::uint64_t units = slice.steps();
  sums.accesses = units;
  if (access.rule != kNone) {
    units = slice.parts(access.rule);
    const bool separate = slice.series.outline->rules[access.rule].rule.separate;
    sums.accesses = separate ? units : access.unit.v == 0 ? 0 : slice.hits(access.rule);
  }
  (access.write ? sums.written : sums.read) = Bytes{units * access.unit.v};
  return sums;
}

void add_steps(const SessionIndex& index, Range<std::uint64_t> wanted, SessionStatistics& out) {
  const std::set<StepId> damaged(index.damaged().begin(), index.damaged().end());
  std::map<Phase, std::vector<Ns>> durations;
  const auto end = std::min<std::uint64_t>(wanted.to, index.steps().size());
  for (std::uint64_t i = wanted.from; i < end; ++i) {
    if (damaged.contains(StepId{static_cast<std::uint32_t>(i)})) {
      ++out.damaged_steps;
      continue;
    }
    const IndexedStep& step = index.steps()[static_cast<std::size_t>(i)];
    if (step.left_out) continue;
    ++out.steps;
    out.tokens += step.n_tokens;
    // Unsigned arithmetic, because values of a damaged file may overflow.
    const std::uint64_t took =
        static_cast<std::uint64_t>(step.end.v) - static_cast<std::uint64_t>(step.begin.v);
    out.time.v = static_cast<std::int64_t>(static_cast<std::uint64_t>(out.time.v) + took);
    if (step.is_normal()) durations[step.phase].push_back(Ns{static_cast<std::int64_t>(took)});
  }
  for (auto& [phase, took] : durations)
    if (const auto spread = spread_of(std::move(took))) out.step_times[phase] = *spread;
}

}  // namespace

AccessSums& AccessSums::operator+=(const AccessSums& other) {
  accesses += other.accesses;
  read += other.read;
  written += other.written;
  return *this;
}

SessionStatistics session_statistics(const SessionIndex& index, const StatisticsQuery& query) {
  SessionStatistics out;
  add_steps(index, query.steps, out);
  const SessionNames& names = index.names();
  const bool any_layer = query.layers == LayerSet::all();
  std::vector<bool> touched(names.tensors().size());
  for (const Series& series : index.series()) {
    const SeriesSlice slice = slice_of(series, query.steps);
    if (slice.from >= slice.to) continue;
    for (const OutlineOp& op : std::span(series.outline->ops).first(series.ran)) {
      bool counts = any_layer;
      for (const OutlineAccess& access :
           std::span(series.outline->accesses).subspan(op.first_access, op.accesses)) {
        const SessionView& view = names.views()[access.name];
        if (!query.layers.has(view.layer)) continue;
        counts = true;
        const AccessSums sums = sums_of(slice, access);
        if (sums.accesses == 0) continue;
        touched[access.tensor] = true;
        out.all += sums;
        out.phases[series.phase] += sums;
        out.layers[view.layer] += sums;
        out.op_kinds[names.kinds()[op.kind]] += sums;
        out.components[view.component] += sums;
        out.sources[view.source] += sums;
        if (view.kind == TensorKind::Weight) out.weights[view.name] += sums;
      }
      if (counts) out.ops += slice.steps();
    }
  }
  for (std::size_t i = 0; i < touched.size(); ++i) {
    if (!touched[i]) continue;
    const SessionTensor& tensor = names.tensors()[i];
    ++out.tensors[tensor.kind];
    if (tensor.kind == TensorKind::Weight) out.weights_size += tensor.size;
  }
  return out;
}

}  // namespace tt
