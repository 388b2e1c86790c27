// Statistics of a tensor's values (level VERBOSE). Reads the tensor from any device. Call only
// when the tensor is complete and not yet overwritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tracer/format/model/step.h"

struct ggml_tensor;

namespace tt {

// Welford's algorithm: numerically stable if the mean is far from zero.
class ValueSums {
 public:
  void add(float value);
  ValueStats stats() const;  // the caller sets ValueStats::op

 private:
  std::uint64_t count_ = 0, nan_ = 0, inf_ = 0;
  double mean_ = 0, squares_ = 0;
  float min_ = 0, max_ = 0;
};

// nullopt for types that cannot be converted to float (index lists). `scratch` is reused between
// calls. The caller sets ValueStats::op.
std::optional<ValueStats> value_stats(const ggml_tensor& tensor, std::vector<std::byte>& scratch);

}  // namespace tt
