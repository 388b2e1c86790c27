#include "tracer/probe/value_stats.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "tracer/probe/tensor_rows.h"

namespace tt {

void ValueSums::add(float value) {
  if (std::isnan(value)) {
    ++nan_;
  } else if (std::isinf(value)) {
    ++inf_;
  } else {
    if (count_ == 0) min_ = max_ = value;
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    ++count_;
    const double delta = value - mean_;
    mean_ += delta / static_cast<double>(count_);
    squares_ += delta * (value - mean_);
  }
}

ValueStats ValueSums::stats() const {
  return {.op = {},
          .min = min_,
          .max = max_,
          .mean = static_cast<float>(mean_),
          .std = count_ == 0
                     ? 0.0F
                     : static_cast<float>(std::sqrt(squares_ / static_cast<double>(count_))),
          .nan = nan_,
          .inf = inf_};
}

std::optional<ValueStats> value_stats(const ggml_tensor& tensor, std::vector<std::byte>& scratch) {
  if (tensor.type == GGML_TYPE_I32 || !has_readable_rows(tensor)) return std::nullopt;
  ValueSums sums;
  for_each_row(tensor, scratch, [&](std::span<const float> row) {
    for (const float value : row) sums.add(value);
  });
  return sums.stats();
}

}  // namespace tt
