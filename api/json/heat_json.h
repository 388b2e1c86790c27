// Heat maps, memory maps, timelines, breakdowns and the order of reads: as JSON,
// and pictures as columns (api/columns.md), which a page can draw from in place.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/raster.h"
#include "analysis/weights/sequentiality.h"
#include "api/json/json.h"

namespace tt {

// A picture as JSON, up to so many cells.
inline constexpr std::uint64_t kMostJsonCells = std::uint64_t{1} << 23;
std::string json_of(const Raster& raster);
// "application/vnd.tensor-trace.columns": the same, its cells as 32-bit floats.
inline constexpr const char* kColumnsType = "application/vnd.tensor-trace.columns";
std::string columns_of(const Raster& raster);

// With the rows of their page.
Json to_json(const Breakdown& breakdown);
Json to_json(const HotCold& hot);
Json to_json(const Sequentiality& order);

}  // namespace tt
