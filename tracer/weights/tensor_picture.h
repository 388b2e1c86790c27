// A tensor as a picture, columns to the right and rows downwards, and single values of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/weights/weight_reader.h"

namespace tt {

// What a cell is of the values that it covers: their mean, the largest of their absolute values, or
// the mean of a parameter with which they are decoded (block_parameters.h): scale or minimum.
enum class CellOf : std::uint8_t { Mean, MaxAbs, Scale, Minimum };
constexpr std::string_view to_text(CellOf of) {
  constexpr std::array<std::string_view, 4> kNames = {"mean", "max_abs", "scale", "minimum"};
  return kNames[std::to_underlying(of)];
}
// Empty if the type of the tensor has what the cells would show; else why not, as a sentence's end.
std::string no_picture_reason(const GgufTensor& tensor, CellOf of);

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
};
// `row` and `column` must be in the tensor. Error: undecodable_reason(), or the file could not be
// read.
std::expected<TensorValue, std::string> tensor_value(WeightReader& reader, const GgufTensor& tensor,
                                                     std::uint64_t row, std::size_t column);

}  // namespace tt
