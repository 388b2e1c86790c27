// A trace laid out along two axes and summed up into pixels: heat maps (token x
// layer), maps of memory (file x all), timelines (time x file). The cost is that of
// the pixels, not of the accesses: session_index.h says how.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/aggregate/axis_rows.h"
#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/page.h"
#include "analysis/index/session_index.h"

namespace tt {

struct AxisQuery {
  Axis axis = Axis::All;
  std::uint32_t pixels = 0;                      // at most
  std::optional<Stretch<std::int64_t>> range{};  // in the axis' unit, or of its rows; none: all
  friend bool operator==(const AxisQuery&, const AxisQuery&) = default;
};

// At most one of the axes says when.
struct RasterQuery {
  AxisQuery x, y;
  Value value = Value::Touched;
  TraceFilter filter{};
  friend bool operator==(const RasterQuery&, const RasterQuery&) = default;
};

struct RasterAxis {
  Axis axis = Axis::All;
  std::int64_t size = 0;  // of the whole axis: it goes from 0, but for time, to here
  // What the pixels show: pixel p the numbers from range.from + p * n / pixels, rounded
  // down, up to where p + 1 begins; n is the length of the range.
  Stretch<std::int64_t> range{};
  std::uint32_t pixels = 0;
  std::vector<std::string> rows;      // names, of those in range; empty where numbers say it
  std::vector<std::int64_t> keys;     // AxisRows::keys() of the same rows
  std::vector<AxisSection> sections;  // of an axis of bytes
  friend bool operator==(const RasterAxis&, const RasterAxis&) = default;
};

struct Raster {
  RasterAxis x, y;
  Value value = Value::Touched;
  std::vector<double> cells;  // y.pixels rows of x.pixels
  double largest = 0;         // of the cells
  double shown = 0;           // sum of the cells
  // Of everything that passes the filter, and lies in the range of the axis that says
  // when; beyond `shown` it is what lies out of the range of another axis, or on no
  // row of it (an access that is of no expert, or of no file).
  double total = 0;
  std::uint32_t damaged_steps = 0;  // of the session; they are in no sum
};

std::expected<Raster, TraceError> raster(const SessionIndex& index, const RasterQuery& query,
                                         const KeepGoing& keep_going = always);

}  // namespace tt
