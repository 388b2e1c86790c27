#include "tracer/weights/tensor_picture.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>

#include "tracer/weights/block_parameters.h"
#include "tracer/weights/ggml_type_name.h"

namespace tt {

namespace {

// Sums of the pixels of one row of cells.
class CellRow {
 public:
  CellRow(const PictureAxis& x, CellOf of) : of_(of), sums_(x.pixels), counts_(x.pixels) {
    for (std::uint32_t pixel = 0; pixel <= x.pixels; ++pixel) starts_.push_back(x.start_of(pixel));
  }
  void add(std::span<const float> row) {
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
  // Appends the cells and begins the next row.
  void end(std::vector<float>& cells) {
    for (std::size_t pixel = 0; pixel < sums_.size(); ++pixel)
      cells.push_back(static_cast<float>(of_ == CellOf::MaxAbs
                                             ? sums_[pixel]
                                             : sums_[pixel] / static_cast<double>(counts_[pixel])));
    std::ranges::fill(sums_, 0);
    std::ranges::fill(counts_, 0);
  }

 private:
  const CellOf of_;
  std::vector<std::uint64_t> starts_;
  std::vector<double> sums_;
  std::vector<std::uint64_t> counts_;
};

// The numbers of a row that the cells are made of: its values, or a parameter of their blocks for
// each of them.
class CellValues {
 public:
  CellValues(const GgufTensor& tensor, CellOf of)
      : of_(of), layout_(shows_parameter(of) ? block_layout(tensor.type) : nullptr) {}

  // Valid until the next call.
  std::span<const float> row(const WeightRows& rows, std::uint64_t i) {
    if (layout_ == nullptr) return rows.row(i);
    values_.clear();
    const auto bytes = rows.row_of_bytes(i);
    for (std::size_t at = 0; at < bytes.size(); at += layout_->bytes) {
      parameters_.scales.clear();
      parameters_.minima.clear();
      layout_->decode(bytes.subspan(at, layout_->bytes), parameters_);
      for (const float one : of_ == CellOf::Scale ? parameters_.scales : parameters_.minima)
        values_.insert(values_.end(), layout_->sub_values, one);
    }
    return values_;
  }

  static bool shows_parameter(CellOf of) { return of == CellOf::Scale || of == CellOf::Minimum; }

 private:
  const CellOf of_;
  const BlockLayout* const layout_;
  BlockParameters parameters_;
  std::vector<float> values_;
};

std::uint64_t most_in_a_pixel(const PictureAxis& axis) {
  const std::uint64_t positions = axis.to - axis.from;
  return (positions + axis.pixels - 1) / axis.pixels;
}

}  // namespace

std::string no_picture_reason(const GgufTensor& tensor, CellOf of) {
  if (std::string why = undecodable_reason(tensor); !why.empty()) return why;
  if (!CellValues::shows_parameter(of)) return {};
  const BlockLayout* const layout = block_layout(tensor.type);
  if (layout == nullptr) return std::format("the type {} has no blocks", tensor.type);
  if (of == CellOf::Minimum && !layout->has_minima)
    return std::format("the blocks of type {} have no minima", tensor.type);
  return {};
}

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

std::expected<TensorPicture, std::string> tensor_picture(WeightReader& reader,
                                                         const GgufTensor& tensor,
                                                         const PictureAxis& x, const PictureAxis& y,
                                                         CellOf of,
                                                         const std::function<bool()>& keep_going) {
  if (std::string why = no_picture_reason(tensor, of); !why.empty())
    return std::unexpected(std::move(why));
  TensorPicture picture{.of = of, .x = x, .y = y, .cells = {}};
  picture.cells.reserve(std::size_t{x.pixels} * y.pixels);
  CellValues values(tensor, of);
  CellRow row(x, of);
  std::uint32_t pixel = 0;
  bool whole = true;
  auto read =
      reader.read(tensor, {.first = y.from, .count = y.to - y.from}, [&](const WeightRows& rows) {
        for (std::uint64_t i = 0; i < rows.count; ++i) {
          row.add(values.row(rows, i));
          if (rows.first + i + 1 < y.start_of(pixel + 1)) continue;
          row.end(picture.cells);
          ++pixel;
        }
        return whole = keep_going();
      });
  if (!read) return std::unexpected(std::move(read.error()));
  if (!whole) return std::unexpected("cancelled");
  for (const float cell : picture.cells)
    if (std::isfinite(cell)) picture.largest = std::max(picture.largest, std::abs(cell));
  picture.values_per_cell = most_in_a_pixel(x) * most_in_a_pixel(y);
  return picture;
}

std::expected<TensorValue, std::string> tensor_value(WeightReader& reader, const GgufTensor& tensor,
                                                     std::uint64_t row, std::size_t column) {
  TensorValue found{.row = row, .column = column};
  auto read = reader.read(tensor, {.first = row, .count = 1}, [&](const WeightRows& rows) {
    const ggml_type type = *ggml_type_named(tensor.type);
    found.value = rows.row(0)[column];
    found.values = static_cast<std::size_t>(ggml_blck_size(type));
    found.first = column / found.values * found.values;
    const std::size_t bytes = ggml_type_size(type);
    const auto block = rows.bytes.subspan(found.first / found.values * bytes, bytes);
    found.bytes.assign(block.begin(), block.end());
    const BlockLayout* const layout = block_layout(tensor.type);
    if (layout == nullptr) return false;
    BlockParameters parameters;
    layout->decode(block, parameters);
    const std::size_t sub = (column - found.first) / layout->sub_values;
    found.scale = parameters.scales[sub];
    if (layout->has_minima) found.minimum = parameters.minima[sub];
    // Codebooks have eighths of integers.
    const float quant =
        std::round(8 * (found.value + found.minimum.value_or(0)) / *found.scale) / 8;
    if (std::isfinite(quant)) found.quant = quant;
    return false;
  });
  if (!read) return std::unexpected(std::move(read.error()));
  return found;
}

}  // namespace tt
