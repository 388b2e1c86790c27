// A tensor as a picture, columns to the right and rows downwards, and single values of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/weights/weight_reader.h"

namespace tt {

// What a cell that covers several values is: their mean, or the largest of their absolute values.
enum class CellOf : std::uint8_t { Mean, MaxAbs };
constexpr std::string_view to_text(CellOf of) { return of == CellOf::Mean ? "mean" : "max_abs"; }

// A half-open range of columns or rows, divided into pixels. Pixel p covers the positions from
// from + floor(p * (to - from) / pixels) up to the start of pixel p + 1.
struct PictureAxis {
  std::uint64_t size = 0;  // of the whole tensor
  std::uint64_t from = 0, to = 0;
  std::uint32_t pixels = 0;  // at most to - from
  std::uint64_t start_of(std::uint32_t pixel) const {
    return from + static_cast<std::uint64_t>(pixel) * (to - from) / pixels;
  }
};
// The part of an axis of `size` positions from `from` to `to`, which are clipped; nullopt: it is
// empty.
std::optional<PictureAxis> picture_axis(std::uint64_t size, std::uint64_t from, std::uint64_t to,
                                        std::uint32_t pixels);

struct TensorPicture {
  CellOf of = CellOf::Mean;
  PictureAxis x, y;  // columns, rows as in RowRange
  // Row by row. NaN: the pixel has a value that is not finite, so that none is overlooked.
  std::vector<float> cells;
  float largest = 0;                  // absolute value of the finite cells
  std::uint64_t values_per_cell = 0;  // of the cell that covers most; 1: each cell is a value
};

// Reads the rows of `y`, a piece at a time, and calls keep_going between pieces. Error:
// undecodable_reason(), the file could not be read, or "cancelled".
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
};
// `row` and `column` must be in the tensor. Error as above.
std::expected<TensorValue, std::string> tensor_value(WeightReader& reader, const GgufTensor& tensor,
                                                     std::uint64_t row, std::size_t column);

}  // namespace tt
