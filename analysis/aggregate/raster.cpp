#include "analysis/aggregate/raster.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/aggregate/fault_walk.h"
#include "analysis/aggregate/series_layout.h"
#include "analysis/aggregate/step_shares.h"

namespace tt {

namespace {

// The range of the complete session in the unit of the axis.
Range<std::int64_t> extent_of(const SessionIndex& index, Axis axis) {
  if (index.steps().empty()) return {};
  if (axis == Axis::Step) return {0, static_cast<std::int64_t>(index.steps().size())};
  const SessionIndex::Extent& extent = index.extent();
  if (axis == Axis::Token) return {0, static_cast<std::int64_t>(extent.tokens)};
  // The end is exclusive, so the last instant is included.
  return {extent.begin.v, extent.end.v < INT64_MAX ? extent.end.v + 1 : INT64_MAX};
}

// The axis with its full size and the requested range.
RasterAxis described(Axis axis, Range<std::int64_t> all, const AxisQuery& query) {
  RasterAxis out;
  out.axis = axis;
  out.size = all.to;
  out.range = all;
  if (query.range)
    out.range = {std::max(query.range->from, all.from), std::min(query.range->to, all.to)};
  if (out.range.to < out.range.from) out.range.to = out.range.from;
  return out;
}

class RasterBuilder {
 public:
  RasterBuilder(const SessionIndex& index, const RasterQuery& query,
                const ContinueCheck& keep_going)
      : index_(index),
        query_(query),
        keep_going_(keep_going),
        matcher_(index, query.filter),
        shares_(index, query.filter.phase,
                query.value == Value::Time ? StepShares::Times::Yes : StepShares::Times::No),
        layouts_(index, x_, y_, query.value, matcher_) {}

  std::expected<Raster, TraceError> build() {
    raster_.value = query_.value;
    raster_.damaged_steps = static_cast<std::uint32_t>(index_.damaged().size());
    raster_.left_out_steps = index_.left_out();
    const bool when_x = is_temporal(query_.x.axis), when_y = is_temporal(query_.y.axis);
    assert(!(when_x && when_y));
    if (!when_x) place(query_.x, x_rows_, x_, raster_.x);
    if (!when_y) place(query_.y, y_rows_, y_, raster_.y);
    std::expected<void, TraceError> filled;
    if (query_.value == Value::Faults) {
      filled = add_faults();
    } else if (when_x || when_y) {
      filled = add_columns(when_x ? query_.x : query_.y, when_x ? raster_.x : raster_.y,
                           when_x ? raster_.y.pixels : raster_.x.pixels, when_x);
    } else {
      raster_.cells.assign(std::size_t{raster_.x.pixels} * raster_.y.pixels, 0);
      filled = add(window_of(index_, query_.filter), raster_.cells, raster_.total);
    }
    if (!filled) return std::unexpected(filled.error());
    // Four accumulators break the dependency chain of the additions.
    std::array<double, 4> largest{}, shown{};
    for (std::size_t i = 0; i < raster_.cells.size(); ++i) {
      largest[i % 4] = std::max(largest[i % 4], raster_.cells[i]);
      shown[i % 4] += raster_.cells[i];
    }
    raster_.largest = std::ranges::max(largest);
    raster_.shown = shown[0] + shown[1] + shown[2] + shown[3];
    return std::move(raster_);
  }

 private:
  void place(const AxisQuery& query, std::unique_ptr<AxisRows>& rows, PlacedAxis& axis,
             RasterAxis& out) {
    rows = std::make_unique<AxisRows>(index_, query.axis, matcher_, query_.filter.phase);
    out = described(query.axis, {0, rows->size()}, query);
    axis = {rows.get(), AxisScale(out.range, query.pixels)};
    out.pixels = axis.scale.pixels();
    out.sections = rows->sections();
    for (std::int64_t i = out.range.from; i < out.range.to && !rows->names().empty(); ++i) {
      out.rows.push_back(rows->names()[static_cast<std::size_t>(i)]);
      out.keys.push_back(rows->keys()[static_cast<std::size_t>(i)]);
    }
  }

  Status add(const StepWindow& window, std::span<double> cells, double& total) {
    if (!keep_going_()) return std::unexpected(cancelled_error());
    shares_.visit(window, [&](const SeriesShare& share) { layouts_.add(share, cells, total); });
    return {};
  }

  StepWindow window_at(Axis axis, std::int64_t from, std::int64_t to) const {
    StepWindow window{.steps = {0, index_.steps().size()}, .tokens = {}, .time = {}};
    const Range<std::uint64_t> counted{static_cast<std::uint64_t>(from),
                                       static_cast<std::uint64_t>(to)};
    if (axis == Axis::Step) window.steps = counted;
    if (axis == Axis::Token) window.tokens = counted;
    if (axis == Axis::Time) window.time = {from, to};
    return window;
  }

  // Iterates over the temporal axis pixel by pixel.
  Status add_columns(const AxisQuery& query, RasterAxis& out, std::uint32_t height, bool across) {
    out = described(query.axis, extent_of(index_, query.axis), query);
    const AxisScale scale(out.range, query.pixels);
    out.pixels = scale.pixels();
    const std::uint32_t width = scale.pixels();
    raster_.cells.assign(std::size_t{width} * height, 0);
    const StepWindow filtered = window_of(index_, query_.filter);
    // Computes several columns before storing them: adjacent cells of a row share a cache
    // line, so storing kAtOnce of them costs no more than storing one.
    constexpr std::uint32_t kAtOnce = 8;
    std::vector<double> filled(std::size_t{kAtOnce} * height);
    for (std::uint32_t first = 0; first < width; first += kAtOnce) {
      const std::uint32_t n = std::min(kAtOnce, width - first);
      std::ranges::fill(filled, 0);
      for (std::uint32_t p = 0; p < n; ++p) {
        const auto window = within(
            window_at(query.axis, scale.edge(first + p), scale.edge(first + p + 1)), filtered);
        const auto column = std::span(filled).subspan(std::size_t{p} * height, height);
        if (auto added = add(window, column, raster_.total); !added) return added;
      }
      if (!across) {
        std::copy_n(filled.begin(), std::size_t{n} * height,
                    raster_.cells.begin() + std::ptrdiff_t{first} * height);
        continue;
      }
      for (std::uint32_t q = 0; q < height; ++q)
        for (std::uint32_t p = 0; p < n; ++p)
          raster_.cells[std::size_t{q} * width + first + p] = filled[std::size_t{p} * height + q];
    }
    return {};
  }

  // Adds the faults one by one: there are far fewer faults than accesses.
  Status add_faults() {
    StepWindow window = window_of(index_, query_.filter);
    AxisScale x, y;
    for (const auto& [query, out, scale, placed] :
         {std::tie(query_.x, raster_.x, x, x_), std::tie(query_.y, raster_.y, y, y_)}) {
      if (!is_temporal(query.axis)) {
        scale = placed.scale;
        continue;
      }
      out = described(query.axis, extent_of(index_, query.axis), query);
      scale = AxisScale(out.range, query.pixels);
      out.pixels = scale.pixels();
      window = within(window, window_at(query.axis, out.range.from, out.range.to));
    }
    raster_.cells.assign(std::size_t{raster_.x.pixels} * raster_.y.pixels, 0);
    return for_each_fault(index_, window, query_.filter.phase, matcher_, keep_going_,
                          [&](const FaultShare& fault) {
                            raster_.total += fault.count;
                            const Range<std::int64_t> in_x = place_of(fault, query_.x.axis, x_),
                                                      in_y = place_of(fault, query_.y.axis, y_);
                            y.spread(in_y.from, in_y.to, [&](std::uint32_t row, double of_y) {
                              x.spread(in_x.from, in_x.to, [&](std::uint32_t column, double of_x) {
                                raster_.cells[std::size_t{row} * raster_.x.pixels + column] +=
                                    fault.count * of_x * of_y;
                              });
                            });
                          });
  }

  static Range<std::int64_t> place_of(const FaultShare& fault, Axis axis,
                                      const PlacedAxis& placed) {
    if (axis == Axis::Time) return fault.time;
    if (axis == Axis::Step) return {fault.entry.step, std::int64_t{fault.entry.step} + 1};
    if (axis == Axis::Token)
      return {static_cast<std::int64_t>(fault.tokens.from),
              static_cast<std::int64_t>(fault.tokens.to)};
    return placed.rows->rows_of(fault.series, fault.entry);
  }

  const SessionIndex& index_;
  const RasterQuery& query_;
  const ContinueCheck& keep_going_;
  const TraceMatcher matcher_;
  StepShares shares_;
  std::unique_ptr<AxisRows> x_rows_, y_rows_;
  PlacedAxis x_, y_;  // without rows: a temporal axis
  SeriesLayouts layouts_;
  Raster raster_;
};

}  // namespace

std::expected<Raster, TraceError> raster(const SessionIndex& index, const RasterQuery& query,
                                         const ContinueCheck& keep_going) {
  return RasterBuilder(index, query, keep_going).build();
}

}  // namespace tt
