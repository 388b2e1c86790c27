// Which tensors of a model may have fewer bits: a mix of quantization types for llama-quantize that
// fits into a number of bytes with the least error.
//
// Rows of each tensor are quantized as llama-quantize does it, and compared with the original.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tracer/weights/type_trial.h"
#include "tracer/weights/weighing.h"
#include "tracer/weights/weight_reader.h"

namespace tt {

// One type that a tensor may have.
struct MixType {
  std::string type;         // "q4_K", as llama-quantize's --tensor-type takes it
  std::uint64_t bytes = 0;  // of the tensor
  double relative = 0;      // error (ErrorSum::relative()) of the rows that were tried
};

struct MixTensor {
  std::string name;
  std::uint64_t values = 0;
  std::string type;         // the chosen one
  std::uint64_t bytes = 0;  // with it
  double relative = 0;      // with it
  bool is_fixed = false;    // llama-quantize leaves it as it is
  std::string rule;         // its line of llama-quantize's --tensor-type-file; empty: is_fixed
  double error_share = 0;   // of the squared error of the whole model
  // The part of the squared relative error of the model that comes from this tensor, per byte that
  // the chosen type saves. nullopt: it saves nothing.
  std::optional<double> error_per_byte{};
  std::vector<MixType> types;  // the present type first, then by size, the largest first
};

// Whether llama-quantize changes the type of the tensor.
bool is_quantizable(const GgufTensor& tensor);

// The error of a whole model: the square root of the mean of the squares of the tensors' relative
// errors, weighted by their numbers of values (times how often a session reads them). Only tensors
// that llama-quantize changes count.
class ModelError {
 public:
  void add(double weight, double relative) {
    weight_ += weight;
    squares_ += weight * relative * relative;
  }
  double relative() const { return weight_ > 0 ? std::sqrt(squares_ / weight_) : 0; }
  // The part of relative()² that comes from a tensor that was added.
  double share(double weight, double relative) const {
    return weight_ > 0 ? weight * relative * relative / weight_ : 0;
  }

 private:
  double weight_ = 0, squares_ = 0;
};

// All tensors of one type.
struct UniformMix {
  std::string type;
  std::uint64_t bytes = 0;
  double relative = 0;
};

struct QuantizationMix {
  std::vector<MixTensor> tensors;  // in file order
  std::uint64_t bytes = 0;         // of all tensors
  double relative = 0;
  std::vector<UniformMix> uniform;  // all tensors of one type, for comparison; largest first
  std::uint64_t rows_tried = 0;     // per tensor at most MixOptions::rows
};

struct MixOptions {
  std::uint64_t bytes = 0;        // that all tensors may have
  std::size_t rows = kTriedRows;  // of each tensor, evenly spread
};

// Error: the model could not be read, or it does not fit with any mix (the message says how small
// it can be). `keep_going` is called after each tensor; false: an error.
std::expected<QuantizationMix, std::string> quantization_mix(
    WeightReader& reader, const GgufIndex& index, const MixOptions& options,
    const Weighing& weighing, const std::function<bool()>& keep_going);

}  // namespace tt
