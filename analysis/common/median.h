// The median of samples, between the two middle ones if their number is even. Times of steps have
// the nearest rank instead (tracer/format/model/quantile.h).
#pragma once

#include <cstddef>
#include <span>

namespace tt {

// `sorted` is ascending and not empty.
inline double median_of_sorted(std::span<const double> sorted) {
  const std::size_t n = sorted.size();
  return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

}  // namespace tt
