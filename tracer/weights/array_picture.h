// An array of numbers as a picture, columns to the right and rows downwards. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tt {

// What a cell is of the values that it covers: their mean, the largest of their absolute values, or
// the mean of a parameter with which they are decoded (block_parameters.h).
enum class CellOf : std::uint8_t {
  Mean,
  MaxAbs,
  Scale,
  Minimum,
  SuperScale,
  SuperMinimum,
  ScaleFactor,
  MinimumFactor
};
constexpr std::string_view to_text(CellOf of) {
  constexpr std::array<std::string_view, 8> kNames = {
      "mean",        "max_abs",       "scale",        "minimum",
      "super_scale", "super_minimum", "scale_factor", "minimum_factor"};
  return kNames[std::to_underlying(of)];
}

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

// Sums of the pixels of one row of cells.
class CellRow {
 public:
  CellRow(const PictureAxis& x, CellOf of);
  void add(std::span<const float> row);
  // Appends the cells and begins the next row.
  void end(std::vector<float>& cells);

 private:
  const CellOf of_;
  std::vector<std::uint64_t> starts_;
  std::vector<double> sums_;
  std::vector<std::uint64_t> counts_;
};

// Sets what is known when all cells are there.
void finish(TensorPicture& picture);

// The picture of an array in memory, of `x.size` values in a row. `of`: Mean or MaxAbs.
TensorPicture array_picture(std::span<const float> values, const PictureAxis& x,
                            const PictureAxis& y, CellOf of);

}  // namespace tt
