#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "tracer/modelgen/model_plan.h"

// Random weights in the tensor's type. A tensor's bytes depend only on the seed and its name,
// not on the order of generation.
namespace tt::modelgen::detail {

class WeightSource {
 public:
  explicit WeightSource(std::uint64_t seed) : seed_(seed) {}

  // Passes the tensor's bytes to `take` in order, in chunks, until it returns false. Returns
  // whether all were taken.
  //
  // Small and unquantized tensors are drawn value by value. Larger quantized tensors are composed
  // of random blocks from a pool of quantized values of the same type and distribution, because
  // quantizing a billion values would take a minute. No two of the first million rows are equal.
  bool produce(const PlannedTensor& tensor,
               const std::function<bool(std::span<const std::byte>)>& take);

 private:
  const std::vector<std::byte>& pool(const PlannedTensor& tensor);

  std::uint64_t seed_;
  std::map<std::tuple<ggml_type, float, float>, std::vector<std::byte>> pools_;
};

}  // namespace tt::modelgen::detail
