// Where on an axis that says where (analysis/aggregate/trace_axis.h) what a step did lies: looked
// up row by row and pixel by pixel.
#pragma once

#include <cstdint>
#include <map>

#include "analysis/aggregate/raster.h"
#include "tracer/format/access/access.h"

namespace tt::test {

// One access of a step, or one of its ops by its main access.
struct Fact {
  const GraphTemplate* graph;
  const Step* step;
  std::uint32_t op;
  const Access* access = nullptr;  // null: the op has none
  FileRange file;
  std::uint64_t address = 0, span = 0;
  std::int32_t expert = -1;
};

// The pixels that a fact lies on, each with its share of it.
using PixelShares = std::map<std::uint32_t, double>;
PixelShares spread(const RasterAxis& axis, std::int64_t begin, std::int64_t end);
PixelShares where(const SessionIndex& index, const RasterAxis& axis, const Fact& fact);

}  // namespace tt::test
