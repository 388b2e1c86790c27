// Reference lookup of the pixels of an access or op on an axis (analysis/aggregate/trace_axis.h)
// other than step, token and time.
#pragma once

#include <cstdint>
#include <map>

#include "analysis/aggregate/raster.h"
#include "tracer/format/access/access.h"

namespace tt::test {

// One access of a step, or an op with its main access.
struct Fact {
  const GraphTemplate* graph;
  const Step* step;
  std::uint32_t op;
  const Access* access = nullptr;  // null: the op has no access
  FileRange file;
  std::uint64_t address = 0, span = 0;
  std::int32_t expert = -1;
};

// The pixels of a fact with the share of each.
using PixelShares = std::map<std::uint32_t, double>;
PixelShares range_pixel_shares(const RasterAxis& axis, std::int64_t begin, std::int64_t end);
PixelShares pixel_shares(const SessionIndex& index, const RasterAxis& axis, const Fact& fact);

}  // namespace tt::test
