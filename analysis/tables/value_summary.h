// What captured values are like, in a few numbers (docs/values.md).
#pragma once

#include <cstdint>
#include <span>

namespace tt {

// Of the finite values; if there are none, all but the counts are 0.
struct ValueSummary {
  double min = 0, max = 0, mean = 0, std = 0;
  double norm = 0;  // square root of the sum of the squares
  std::uint64_t finite = 0, nan = 0, inf = 0;
};
ValueSummary summary_of(std::span<const float> values);

}  // namespace tt
