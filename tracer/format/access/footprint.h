// How many bytes of memory the elements of a view occupy. Private to tracer/format.
#pragma once

#include <cstdint>

#include "tracer/format/model/graph_template.h"

namespace tt {

// Distinct bytes that the view's elements occupy: gaps between strided rows do
// not count, overlapping or repeated (stride 0) ones count once, a quantized
// row counts whole blocks. 0 when the view is empty.
std::uint64_t footprint(const Tensor& view);

// From the view's first byte to one past its last, gaps included.
std::uint64_t span_of(const Tensor& view);

}  // namespace tt
