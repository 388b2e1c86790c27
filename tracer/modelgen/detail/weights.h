#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "tracer/modelgen/model_plan.h"

// Random weights, already in the tensor's type. A tensor's bytes depend on the
// seed and its name only, not on what was made before it.
namespace tt::modelgen::detail {

class WeightSource {
 public:
  explicit WeightSource(std::uint64_t seed) : seed_(seed) {}

  // Hands the tensor's bytes over in order, piece by piece, until `take` returns
  // false; returns whether all were taken.
  //
  // Small and unquantized tensors are drawn value by value. Larger quantized ones
  // are put together from a pool of quantized values of the same type and spread,
  // in random order by blocks: quantizing a billion values would take a minute.
  bool produce(const PlannedTensor& tensor,
               const std::function<bool(std::span<const std::byte>)>& take);

 private:
  const std::vector<std::byte>& pool(const PlannedTensor& tensor);

  std::uint64_t seed_;
  std::map<std::tuple<ggml_type, float, float>, std::vector<std::byte>> pools_;
};

}  // namespace tt::modelgen::detail
