#include "tracer/weights/array_picture.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tt {

namespace {

std::uint64_t most_in_a_pixel(const PictureAxis& axis) {
  const std::uint64_t positions = axis.to - axis.from;
  return (positions + axis.pixels - 1) / axis.pixels;
}

}  // namespace

std::optional<PictureAxis> picture_axis(std::uint64_t size, std::uint64_t from, std::uint64_t to,
                                        std::uint32_t pixels) {
  to = std::min(to, size);
  if (from >= to) return std::nullopt;
  return PictureAxis{.size = size,
                     .from = from,
                     .to = to,
                     .pixels = static_cast<std::uint32_t>(
                         std::min<std::uint64_t>(to - from, std::max(pixels, 1U)))};
}

CellRow::CellRow(const PictureAxis& x, CellOf of) : of_(of), sums_(x.pixels), counts_(x.pixels) {
  for (std::uint32_t pixel = 0; pixel <= x.pixels; ++pixel) starts_.push_back(x.start_of(pixel));
}

void CellRow::add(std::span<const float> row) {
  for (std::size_t pixel = 0; pixel < sums_.size(); ++pixel) {
    const auto part = row.subspan(starts_[pixel], starts_[pixel + 1] - starts_[pixel]);
    double sum = sums_[pixel];
    // NaN and infinity times 0 are NaN, which every later sum keeps.
    float faults = 0;
    if (of_ == CellOf::MaxAbs) {
      for (const float value : part) {
        sum = std::max(sum, static_cast<double>(std::abs(value)));
        faults += value * 0;
      }
    } else {
      for (const float value : part) {
        sum += static_cast<double>(value);
        faults += value * 0;
      }
    }
    sums_[pixel] = sum + static_cast<double>(faults);
    if (std::isnan(faults)) sums_[pixel] = std::numeric_limits<double>::quiet_NaN();
    counts_[pixel] += part.size();
  }
}

void CellRow::end(std::vector<float>& cells) {
  for (std::size_t pixel = 0; pixel < sums_.size(); ++pixel)
    cells.push_back(static_cast<float>(
        of_ == CellOf::MaxAbs ? sums_[pixel] : sums_[pixel] / static_cast<double>(counts_[pixel])));
  std::ranges::fill(sums_, 0);
  std::ranges::fill(counts_, 0);
}

void finish(TensorPicture& picture) {
  for (const float cell : picture.cells)
    if (std::isfinite(cell)) picture.largest = std::max(picture.largest, std::abs(cell));
  picture.values_per_cell = most_in_a_pixel(picture.x) * most_in_a_pixel(picture.y);
}

TensorPicture array_picture(std::span<const float> values, const PictureAxis& x,
                            const PictureAxis& y, CellOf of) {
  TensorPicture picture{.of = of, .x = x, .y = y, .cells = {}};
  picture.cells.reserve(std::size_t{x.pixels} * y.pixels);
  CellRow cells(x, of);
  for (std::uint32_t pixel = 0; pixel < y.pixels; ++pixel) {
    for (std::uint64_t row = y.start_of(pixel); row < y.start_of(pixel + 1); ++row)
      cells.add(values.subspan(row * x.size, x.size));
    cells.end(picture.cells);
  }
  finish(picture);
  return picture;
}

}  // namespace tt
