#include "analysis/aggregate/row_figures.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <span>

#include "analysis/aggregate/step_shares.h"
#include "tracer/format/model/quantile.h"

namespace tt {

namespace {

// Limit the memory: cells of a raster at once, and values that are kept at once.
constexpr std::size_t kFigureCells = std::size_t{1} << 22;
constexpr std::size_t kFigureValues = std::size_t{1} << 23;
constexpr std::size_t kFigureUnits = std::size_t{1} << 20;

// The steps of which a part is in the range of x and passes the filter.
Range<std::uint64_t> steps_in_range(const SessionIndex& index, const TraceFilter& filter,
                                    const RasterAxis& x) {
  StepWindow window{.steps = {0, index.steps().size()}, .tokens = {}, .time = {}};
  const Range<std::uint64_t> range{static_cast<std::uint64_t>(x.range.from),
                                   static_cast<std::uint64_t>(x.range.to)};
  (x.axis == Axis::Step ? window.steps : window.tokens.emplace()) = range;
  window = within(window, window_of(index, filter));
  const auto overlaps = [&](std::uint64_t i) {
    const IndexedStep& step = index.steps()[static_cast<std::size_t>(i)];
    return (!window.tokens ||
            (token_begin(step) < window.tokens->to && token_end(step) > window.tokens->from)) &&
           (!window.time || (step.begin.v < window.time->to && step.end.v > window.time->from));
  };
  Range<std::uint64_t> steps = window.steps;
  while (steps.from < steps.to && !overlaps(steps.from)) ++steps.from;
  while (steps.from < steps.to && !overlaps(steps.to - 1)) --steps.to;
  return steps;
}

Phase phase_in(const SessionIndex& index, const TraceFilter& filter, Range<std::uint64_t> steps) {
  if (filter.phase || steps.from >= steps.to) return ranked_phase(index, filter);
  const auto in_range = std::span(index.steps())
                            .subspan(static_cast<std::size_t>(steps.from),
                                     static_cast<std::size_t>(steps.to - steps.from));
  return std::ranges::contains(in_range, Phase::Generate, &IndexedStep::phase)
             ? Phase::Generate
             : in_range.front().phase;
}

// The units of x that a step counts as: its number, or its tokens in the range (of a step of the
// prompt only the last one). Empty if it has none.
Range<std::int64_t> units_of_step(const IndexedStep& step, std::uint64_t number,
                                  const RasterAxis& x) {
  if (x.axis == Axis::Step)
    return {static_cast<std::int64_t>(number), static_cast<std::int64_t>(number) + 1};
  Range<std::int64_t> tokens{std::max(std::int64_t{step.first_token}, x.range.from),
                             std::min(std::int64_t{step.first_token} + step.n_tokens, x.range.to)};
  if (step.phase != Phase::Generate) tokens.from = std::max(tokens.from, tokens.to - 1);
  return tokens;
}

std::optional<RowFigures::Row> row_figure(std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  std::ranges::sort(values);
  const auto at = [&](double q) { return values[quantile_place(values.size(), q)]; };
  return RowFigures::Row{.mean = sum / static_cast<double>(values.size()),
                         .p5 = at(0.05),
                         .median = at(0.5),
                         .p95 = at(0.95)};
}

}  // namespace

std::expected<RowFigures, TraceError> row_figures(const SessionIndex& index,
                                                  const RasterQuery& query, const Raster& of,
                                                  const ContinueCheck& keep_going) {
  assert(of.x.axis == Axis::Step || of.x.axis == Axis::Token);
  const Range<std::uint64_t> steps = steps_in_range(index, query.filter, of.x);
  RowFigures out{.phase = phase_in(index, query.filter, steps), .rows = {}};
  out.rows.resize(of.y.pixels);
  const bool is_time = query.value == Value::Time;
  if (is_time) out.times = timed_steps(index, {.phase = out.phase, .steps = steps});

  std::vector<std::int64_t> units;  // ascending
  for (std::uint64_t i = steps.from; i < steps.to; ++i) {
    const IndexedStep& step = index.steps()[static_cast<std::size_t>(i)];
    if (step.phase != out.phase) continue;
    const bool counts =
        is_time ? out.times->is_used(index, static_cast<std::size_t>(i)) : step.series != kNone;
    const Range<std::int64_t> own = units_of_step(step, i, of.x);
    if (own.from >= own.to) continue;
    // A damaged file may have any numbers.
    const bool fits = (units.empty() || units.back() < own.from) &&
                      static_cast<std::uint64_t>(own.to - own.from) <= kFigureUnits - units.size();
    if (!counts || !fits) {
      out.left_out += static_cast<std::uint64_t>(own.to - own.from);
      continue;
    }
    for (std::int64_t unit = own.from; unit < own.to; ++unit) units.push_back(unit);
  }
  out.units = units.size();
  if (units.empty() || out.rows.empty()) return out;

  const auto columns_at_once = static_cast<std::int64_t>(std::clamp<std::size_t>(
      kFigureCells / out.rows.size(), 1, std::numeric_limits<std::uint32_t>::max()));
  const std::size_t rows_at_once = std::max<std::size_t>(1, kFigureValues / units.size());
  for (std::size_t first = 0; first < out.rows.size(); first += rows_at_once) {
    std::vector<std::vector<double>> values(std::min(rows_at_once, out.rows.size() - first));
    for (std::size_t next = 0; next < units.size();) {
      const Range<std::int64_t> range{units[next],
                                      std::min(units[next] + columns_at_once, units.back() + 1)};
      RasterQuery part = query;
      part.x = {.axis = of.x.axis,
                .pixels = static_cast<std::uint32_t>(range.to - range.from),
                .range = range};
      const auto found = raster(index, part, keep_going);
      if (!found) return std::unexpected(found.error());
      for (; next < units.size() && units[next] < range.to; ++next) {
        const auto column = static_cast<std::size_t>(units[next] - range.from);
        for (std::size_t row = 0; row < values.size(); ++row) {
          const double value = found->cells[(first + row) * found->x.pixels + column];
          if (value > 0 || !is_time) values[row].push_back(value);
        }
      }
    }
    for (std::size_t row = 0; row < values.size(); ++row)
      out.rows[first + row] = row_figure(values[row]);
  }
  return out;
}

}  // namespace tt
