// A trace rasterized along two axes: heat maps (token x layer), memory maps (file x all),
// timelines (time x file). The cost depends on the number of pixels, not on the number of
// accesses, see session_index.h.
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
  std::uint32_t pixels = 0;                    // maximum
  std::optional<Range<std::int64_t>> range{};  // in the axis unit, or row indices; none: all
  friend bool operator==(const AxisQuery&, const AxisQuery&) = default;
};

// At most one of the axes may be time, step or token.
struct RasterQuery {
  AxisQuery x, y;
  Value value = Value::Touched;
  TraceFilter filter{};
  friend bool operator==(const RasterQuery&, const RasterQuery&) = default;
};

struct RasterAxis {
  Axis axis = Axis::All;
  std::int64_t size = 0;  // end of the complete axis; it begins at 0, except for time
  // The range that the pixels cover: pixel p begins at range.from + p * n / pixels, rounded
  // down, and ends where pixel p + 1 begins; n is the length of the range.
  Range<std::int64_t> range{};
  std::uint32_t pixels = 0;
  std::vector<std::string> rows;      // names of the rows in range; empty for numeric axes
  std::vector<std::int64_t> keys;     // AxisRows::keys() of the same rows
  std::vector<AxisSection> sections;  // byte axes only
  friend bool operator==(const RasterAxis&, const RasterAxis&) = default;
};

struct Raster {
  RasterAxis x, y;
  Value value = Value::Touched;
  std::vector<double> cells;  // row-major: y.pixels rows of x.pixels
  double largest = 0;         // maximum of the cells
  double shown = 0;           // sum of the cells
  // Sum of everything that passes the filter and is in the range of the time, step or token
  // axis. It exceeds `shown` by what is outside the range of the other axis or on no row of
  // it (an access without an expert or file).
  double total = 0;
  std::uint32_t damaged_steps = 0;   // of the session; not included in any sum
  std::uint64_t left_out_steps = 0;  // of the index; not included in any sum
};

std::expected<Raster, TraceError> raster(const SessionIndex& index, const RasterQuery& query,
                                         const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
