// Heat maps, memory maps and timelines as JSON, or as binary columns (api/raster_format.md), which
// the web UI reads in place.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "analysis/aggregate/raster.h"
#include "analysis/aggregate/row_figures.h"

namespace tt {

// A raster as JSON. `figures`: of its rows; nullptr: not asked for.
std::string json_of(const Raster& raster, const RowFigures* figures = nullptr);
// Media type of the binary form, with cells as 32-bit floats.
inline constexpr const char* kColumnsType = "application/vnd.tensor-trace.columns";
std::string columns_of(const Raster& raster, const RowFigures* figures = nullptr);

// A raster of api/raster_format.md: `cells` has width * height values, `text` is the JSON without
// the cells.
struct RasterHead {
  std::uint32_t width = 0, height = 0;
  double largest = 0, total = 0;
};
std::string raster_frame(const RasterHead& head, std::span<const float> cells,
                         std::string_view text);

}  // namespace tt
