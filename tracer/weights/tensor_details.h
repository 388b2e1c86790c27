// Statistics of the tensors of a model file: of each, and of one with its rows and blocks.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "tracer/weights/weight_reader.h"
#include "tracer/weights/weight_statistics.h"

namespace tt {

// One row of a list of tensors.
struct TensorSummary {
  const GgufTensor* tensor = nullptr;
  WeightStatistics statistics;
  std::string why{};  // the values cannot be decoded; empty: they can
};

struct TensorDetails {
  const GgufTensor* tensor = nullptr;
  WeightStatistics statistics;
  WeightHistogram histogram;
  // Of all sub-blocks; without values: the type has none.
  WeightHistogram scales, minima;
  struct Row {
    std::uint64_t row = 0;
    WeightStatistics statistics;
  };
  std::vector<Row> rows;  // by number
  // The rows with the largest root mean square, at most `count`, the largest first.
  std::vector<const Row*> largest_rows(std::size_t count) const;
};

// All functions read a piece at a time and call keep_going between pieces. Error: the file could
// not be read, or "cancelled" when keep_going returned false.

// The tensors of `index` in file order. `index` must outlive the result.
std::expected<std::vector<TensorSummary>, std::string> tensor_summaries(
    WeightReader& reader, const GgufIndex& index, const std::function<bool()>& keep_going);

// Error also: undecodable_reason().
std::expected<TensorDetails, std::string> tensor_details(WeightReader& reader,
                                                         const GgufTensor& tensor,
                                                         const std::function<bool()>& keep_going);

}  // namespace tt
