#include "tracer/weights/tensor_picture.h"

#include <ggml.h>

#include <cmath>
#include <format>

#include "tracer/weights/ggml_type_name.h"

namespace tt {

namespace {

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
      layout_->decode(bytes.subspan(at, layout_->bytes), parameters_);
      if (of_ == CellOf::SuperScale || of_ == CellOf::SuperMinimum) {
        values_.insert(
            values_.end(), layout_->values,
            of_ == CellOf::SuperScale ? parameters_.super_scale : parameters_.super_minimum);
        continue;
      }
      for (const float one : by_sub_block())
        values_.insert(values_.end(), layout_->sub_values, one);
    }
    return values_;
  }

  static bool shows_parameter(CellOf of) { return of != CellOf::Mean && of != CellOf::MaxAbs; }

 private:
  const std::vector<float>& by_sub_block() const {
    switch (of_) {
      case CellOf::Scale:
        return parameters_.scales;
      case CellOf::ScaleFactor:
        return parameters_.scale_factors;
      case CellOf::MinimumFactor:
        return parameters_.minimum_factors;
      default:
        return parameters_.minima;
    }
  }

  const CellOf of_;
  const BlockLayout* const layout_;
  BlockParameters parameters_;
  std::vector<float> values_;
};

}  // namespace

std::string no_picture_reason(const GgufTensor& tensor, CellOf of) {
  if (std::string why = undecodable_reason(tensor); !why.empty()) return why;
  if (!CellValues::shows_parameter(of)) return {};
  const BlockLayout* const layout = block_layout(tensor.type);
  if (layout == nullptr) return std::format("the type {} has no blocks", tensor.type);
  const bool is_minimum =
      of == CellOf::Minimum || of == CellOf::SuperMinimum || of == CellOf::MinimumFactor;
  if (is_minimum && !layout->has_minima)
    return std::format("the blocks of type {} have no minima", tensor.type);
  if (of != CellOf::Scale && of != CellOf::Minimum && !layout->has_super_block)
    return std::format("the type {} has no super-blocks", tensor.type);
  return {};
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
  finish(picture);
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
    WeightSum of_row, of_block;
    of_row.add(rows.row(0));
    of_block.add_part(rows.row(0).subspan(found.first, found.values),
                      of_row.result().outlier_limit());
    found.statistics = of_block.result();
    const BlockLayout* const layout = block_layout(tensor.type);
    if (layout == nullptr) return false;
    BlockParameters parameters;
    layout->decode(block, parameters);
    const std::size_t sub = (column - found.first) / layout->sub_values;
    found.scale = parameters.scales[sub];
    if (layout->has_minima) found.minimum = parameters.minima[sub];
    found.super_block = layout->super_block(parameters, sub);
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
