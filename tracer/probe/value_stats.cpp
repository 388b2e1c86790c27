#include "tracer/probe/value_stats.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <cmath>
#include <cstddef>

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

std::optional<ValueStats> value_stats(const ggml_tensor& tensor, std::vector<float>& scratch) {
  const ggml_type_traits* traits = ggml_get_type_traits(tensor.type);
  const bool is_float = tensor.type == GGML_TYPE_F32;
  if (!is_float && (traits == nullptr || traits->to_float == nullptr)) return std::nullopt;
  if (tensor.nb[0] != ggml_type_size(tensor.type)) return std::nullopt;  // rows are not contiguous

  const auto row = static_cast<std::size_t>(tensor.ne[0]);
  const std::size_t row_bytes = ggml_row_size(tensor.type, tensor.ne[0]);
  // One buffer for the values and, after them, the raw row.
  scratch.resize(row + (row_bytes + sizeof(float) - 1) / sizeof(float));
  auto* raw = reinterpret_cast<std::byte*>(scratch.data() + row);

  Running running;
  for (std::int64_t i3 = 0; i3 < tensor.ne[3]; ++i3) {
    for (std::int64_t i2 = 0; i2 < tensor.ne[2]; ++i2) {
      for (std::int64_t i1 = 0; i1 < tensor.ne[1]; ++i1) {
        const std::size_t at = static_cast<std::size_t>(i1) * tensor.nb[1] +
                               static_cast<std::size_t>(i2) * tensor.nb[2] +
                               static_cast<std::size_t>(i3) * tensor.nb[3];
        if (is_float) {
          ggml_backend_tensor_get(&tensor, scratch.data(), at, row_bytes);
        } else {
          ggml_backend_tensor_get(&tensor, raw, at, row_bytes);
          traits->to_float(raw, scratch.data(), tensor.ne[0]);
        }
        for (std::size_t i = 0; i < row; ++i) running.add(scratch[i]);
      }
    }
  }
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
