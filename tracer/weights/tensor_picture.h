// A tensor as a picture, columns to the right and rows downwards, and single values of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tracer/weights/array_picture.h"
#include "tracer/weights/block_parameters.h"
#include "tracer/weights/weight_reader.h"
#include "tracer/weights/weight_statistics.h"

namespace tt {

// Empty if the type of the tensor has what the cells would show; else why not, as a sentence's end.
std::string no_picture_reason(const GgufTensor& tensor, CellOf of);

// Reads the rows of `y`, a piece at a time, and calls keep_going between pieces. Error:
// no_picture_reason(), the file could not be read, or "cancelled".
std::expected<TensorPicture, std::string> tensor_picture(WeightReader& reader,
                                                         const GgufTensor& tensor,
                                                         const PictureAxis& x, const PictureAxis& y,
                                                         CellOf of,
                                                         const std::function<bool()>& keep_going);

// One value and what it is decoded from.
struct TensorValue {
  std::uint64_t row = 0;
  std::size_t column = 0;
  float value = 0;
  // The block that contains the value: its first column, its number of values, and its bytes in
  // the file. 1 value: the type has no blocks.
  std::size_t first = 0, values = 0;
  std::vector<std::byte> bytes{};
  // value = quant * scale - minimum (block_parameters.h). nullopt: the type has none, or the scale
  // is 0.
  std::optional<float> scale{}, minimum{}, quant{};
  std::optional<SuperBlock> super_block{};
  WeightStatistics statistics{};  // of the values of the block; outliers as in its row
};
// `row` and `column` must be in the tensor. Error: undecodable_reason(), or the file could not be
// read.
std::expected<TensorValue, std::string> tensor_value(WeightReader& reader, const GgufTensor& tensor,
                                                     std::uint64_t row, std::size_t column);

}  // namespace tt
