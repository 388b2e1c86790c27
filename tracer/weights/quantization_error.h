// How far the values of a tensor are from those of the same tensor in another file, such as the F16
// file that it was quantized from.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tracer/weights/weighing.h"
#include "tracer/weights/weight_reader.h"

namespace tt {

class TypeTrial;  // type_trial.h

// Sums over pairs of values. With importances they are weighted: each column of a tensor by how
// large the inputs are that it is multiplied with (an imatrix file). Rows that count several times
// are weighted, too.
class ErrorSum {
 public:
  // Both of the same size. `importance`: of each value of the row, or empty.
  void add(std::span<const float> reference, std::span<const float> values,
           std::span<const float> importance = {});
  // `times`: as if the values of `other` were there so often. They count once in count().
  void add(const ErrorSum& other, double times = 1);

  std::uint64_t count() const { return count_; }
  // Root of the mean squared error, in the unit of the values.
  double rmse() const { return weights_ > 0 ? std::sqrt(error_ / weights_) : 0; }
  // The root mean square of the error / that of the reference.
  double relative() const {
    if (reference_ > 0) return std::sqrt(error_ / reference_);
    return error_ > 0 ? 1 : 0;
  }
  // Of the angle between both; 1: the same direction.
  double cosine() const {
    const double lengths = std::sqrt(reference_) * std::sqrt(value_);
    if (lengths > 0) return product_ / lengths;
    return error_ > 0 ? 0 : 1;
  }
  double max_error() const { return max_error_; }
  double squared_error() const { return error_; }
  double squared_reference() const { return reference_; }

 private:
  std::uint64_t count_ = 0;
  double weights_ = 0;  // sum of the importances; `count_` without them
  double error_ = 0, reference_ = 0, value_ = 0, product_ = 0;
  double max_error_ = 0;  // not weighted
};

struct RowError {
  std::uint64_t row = 0;
  ErrorSum error;
};
struct BlockError {
  std::uint64_t row = 0;
  std::size_t first = 0;  // value in the row
  double max_error = 0, rmse = 0;
};

struct TensorError {
  ErrorSum all;
  std::vector<RowError> worst_rows;      // by relative error, the worst first
  std::vector<BlockError> worst_blocks;  // by RMSE
};

// Why two tensors cannot be compared (shape, type); empty: they can.
std::string incomparable_reason(const GgufTensor& reference, const GgufTensor& tensor);

// Reads both tensors in turn, a piece at a time. `worst`: how many rows and blocks are kept. Rows
// that were not read, as `weighing` says, are in no figure. `trial`, which may be null, tries its
// rows of the reference. Calls keep_going between pieces; when it returns false, the result is that
// of the rows before.
std::expected<TensorError, std::string> tensor_error(
    WeightReader& reference_reader, const GgufTensor& reference, WeightReader& reader,
    const GgufTensor& tensor, std::size_t worst, const TensorWeighing& weighing, TypeTrial* trial,
    const std::function<bool()>& keep_going);

}  // namespace tt
