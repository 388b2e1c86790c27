#include "analysis/speed/quiet_time.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tracer/format/model/quantile.h"

namespace tt {

double quiet_time(std::span<const double> times) {
  if (times.empty()) return 0;
  constexpr std::size_t kInARow = 16;
  const std::size_t count = std::clamp<std::size_t>(times.size() / 4, 1, kInARow);
  double least = *std::ranges::max_element(times);
  std::vector<double> sorted;
  for (std::size_t first = 0; first + count <= times.size(); ++first) {
    const auto row = times.subspan(first, count);
    sorted.assign(row.begin(), row.end());
    std::ranges::sort(sorted);
    least = std::min(least, quantile<double>(sorted, 0.5).value_or(least));
  }
  return least;
}

}  // namespace tt
