// Statistics of the tensors of a model file: of each, and of one with its rows and blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tracer/weights/block_parameters.h"
#include "tracer/weights/weight_reader.h"
#include "tracer/weights/weight_statistics.h"

namespace tt {

// One row of a list of tensors.
struct TensorSummary {
  const GgufTensor* tensor = nullptr;
  WeightStatistics statistics;
  std::string why{};  // the values cannot be decoded; empty: they can
};

// The quantiles that are shown of a histogram, in percent.
inline constexpr std::array kQuantiles = {0, 1, 25, 50, 75, 99, 100};

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

// A sub-block of a quantized tensor.
struct WeightBlock {
  std::uint64_t row = 0;
  std::size_t first = 0, values = 0;  // columns
  float scale = 0;
  std::optional<float> minimum{};  // nullopt: the type has none
  std::optional<SuperBlock> super_block{};
  WeightStatistics statistics{};  // of its values; outliers as in its row
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

// Gives the sub-blocks of the tensor in order. Error also: the type has no blocks.
std::expected<void, std::string> for_each_block(WeightReader& reader, const GgufTensor& tensor,
                                                const std::function<void(const WeightBlock&)>& take,
                                                const std::function<bool()>& keep_going);

}  // namespace tt
