// Reference implementation of analysis/aggregate/raster.h: adds each op and each access of each
// step to its cells, as docs/heat.md defines them.
#pragma once

#include <vector>

#include "analysis/aggregate/raster.h"

namespace tt::test {

struct NaiveRaster {
  std::vector<double> cells;  // as Raster::cells
  double total = 0;
};

// Uses the axes of `like`, the result of the same query.
NaiveRaster naive_raster(const SessionReader& reader, const SessionIndex& index,
                         const RasterQuery& query, const Raster& like);

}  // namespace tt::test
