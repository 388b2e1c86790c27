#include "tracer/probe/value_stats.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "tracer/probe/tensor_rows.h"

namespace tt {

namespace {

// Welford's algorithm: numerically stable if the mean is far from zero.
struct Running {
  std::uint64_t count = 0, nan = 0, inf = 0;
  double mean = 0, squares = 0;
  float min = 0, max = 0;

  void add(float value) {
    if (std::isnan(value)) {
      ++nan;
    } else if (std::isinf(value)) {
      ++inf;
    } else {
      if (count == 0) min = max = value;
      min = std::min(min, value);
      max = std::max(max, value);
      ++count;
      const double delta = value - mean;
      mean += delta / static_cast<double>(count);
      squares += delta * (value - mean);
    }
  }
};

}  // namespace

std::optional<ValueStats> value_stats(const ggml_tensor& tensor, std::vector<std::byte>& scratch) {
  if (tensor.type == GGML_TYPE_I32 || !has_readable_rows(tensor)) return std::nullopt;
  Running running;
  for_each_row(tensor, scratch, [&](std::span<const float> row) {
    for (const float value : row) running.add(value);
  });
  ValueStats stats;
  stats.min = running.min;
  stats.max = running.max;
  stats.mean = static_cast<float>(running.mean);
  stats.std =
      running.count == 0
          ? 0.0F
          : static_cast<float>(std::sqrt(running.squares / static_cast<double>(running.count)));
  stats.nan = running.nan;
  stats.inf = running.inf;
  return stats;
}

}  // namespace tt
