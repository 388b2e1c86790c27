// Number of bytes that the elements of a view occupy. Private to tracer/format.
#pragma once

#include <cstdint>

#include "tracer/format/model/graph_template.h"

namespace tt {

// Distinct bytes that the view's elements occupy. Gaps between strided rows are not
// counted, overlapping or repeated (stride 0) bytes count once, quantized rows count whole
// blocks. 0 if the view is empty.
std::uint64_t footprint(const Tensor& view);

// Bytes from the view's first byte to one past its last, including gaps.
std::uint64_t span_of(const Tensor& view);

}  // namespace tt
