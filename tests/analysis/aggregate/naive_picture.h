// The second way to a picture (analysis/aggregate/raster.h): every op and every access of every
// step, one by one, into the cells that docs/heat.md says it belongs to.
#pragma once

#include <vector>

#include "analysis/aggregate/raster.h"

namespace tt::test {

struct NaivePicture {
  std::vector<double> cells;  // as Raster::cells
  double total = 0;
};

// On the axes of `like`, which answers the same question.
NaivePicture naive_picture(const SessionReader& reader, const SessionIndex& index,
                           const RasterQuery& query, const Raster& like);

}  // namespace tt::test
