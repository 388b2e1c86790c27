#include "api/json/analysis/weights_json.h"

#include <format>

#include "api/json/raster_json.h"
#include "api/json/result_json.h"
#include "tracer/format/names/names.h"

namespace tt {

namespace {

// Null: no values.
Json bins_json(const WeightHistogram& histogram) {
  constexpr std::size_t kBins = 64;
  if (histogram.count() == 0) return {};
  Json out = Json::array();
  for (const auto& bin : histogram.bins(histogram.quantile(0), histogram.quantile(1), kBins))
    out.push_back({{"from", bin.from}, {"to", bin.to}, {"count", bin.count}});
  return out;
}

// Null: the type has none.
Json super_block_json(const std::optional<SuperBlock>& of) {
  if (!of) return {};
  return {{"scale", finite_json(of->scale)},
          {"scale_factor", of->scale_factor},
          {"minimum", finite_json(of->minimum)},
          {"minimum_factor", finite_json(of->minimum_factor)}};
}

Json axis_json(const PictureAxis& axis) {
  return {{"size", axis.size}, {"from", axis.from}, {"to", axis.to}, {"pixels", axis.pixels}};
}

Json description(const TensorPicture& picture, std::string_view name) {
  return {{"tensor", name},
          {"value", to_text(picture.of)},
          {"x", axis_json(picture.x)},
          {"y", axis_json(picture.y)},
          {"largest", picture.largest},
          {"values_per_cell", picture.values_per_cell}};
}

}  // namespace

Json tensor_json(const GgufTensor& tensor) {
  Json out{{"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.ne}};
  out["layer"] = layer_json(layer_of(tensor.name));
  out["component"] = to_text(component_of(tensor.name, TensorKind::Weight));
  out["bytes"] = tensor.file.length;
  return out;
}

Json to_json(const WeightStatistics& statistics) {
  return {{"count", statistics.count},
          {"zeros", statistics.zeros},
          {"not_finite", statistics.not_finite},
          {"outliers", statistics.outliers},
          {"min", statistics.min},
          {"max", statistics.max},
          {"mean", statistics.mean},
          {"std", statistics.std},
          {"rms", statistics.rms}};
}

Json to_json(const std::vector<TensorSummary>& summaries) {
  Json tensors = Json::array();
  for (const TensorSummary& summary : summaries) {
    Json& row = tensors.emplace_back(tensor_json(*summary.tensor));
    if (summary.why.empty()) {
      row.update(to_json(summary.statistics));
    } else {
      row["error"] = summary.why;
    }
  }
  return {{"tensors", std::move(tensors)}};
}

Json to_json(const TensorDetails& details) {
  Json json = tensor_json(*details.tensor);
  json.update(to_json(details.statistics));
  json["histogram"] = bins_json(details.histogram);
  json["quantiles"] = Json::array();
  for (const int percent : kQuantiles)
    json["quantiles"].push_back(
        {{"share", percent / 100.0}, {"value", details.histogram.quantile(percent / 100.0)}});
  json["scales"] = bins_json(details.scales);
  json["minima"] = bins_json(details.minima);
  return json;
}

Json to_json(const TensorDetails::Row& row) {
  Json json{{"row", row.row}};
  json.update(to_json(row.statistics));
  return json;
}

Json to_json(const TensorValue& value) {
  std::string bytes;
  for (const std::byte one : value.bytes)
    bytes += std::format("{:02x}", std::to_integer<unsigned>(one));
  return {{"row", value.row},
          {"column", value.column},
          {"value", finite_json(value.value)},
          {"quant", finite_json(value.quant)},
          {"scale", finite_json(value.scale)},
          {"minimum", finite_json(value.minimum)},
          {"super_block", super_block_json(value.super_block)},
          {"block",
           {{"first", value.first},
            {"values", value.values},
            {"bytes", bytes},
            {"min", value.statistics.min},
            {"max", value.statistics.max},
            {"mean", value.statistics.mean},
            {"zeros", value.statistics.zeros},
            {"outliers", value.statistics.outliers}}}};
}

Json to_json(const WeightBlock& block) {
  Json json{{"row", block.row},
            {"first", block.first},
            {"values", block.values},
            {"scale", finite_json(block.scale)},
            {"minimum", finite_json(block.minimum)},
            {"super_block", super_block_json(block.super_block)}};
  json.update(to_json(block.statistics));
  return json;
}

std::string json_of(const TensorPicture& picture, std::string_view name) {
  Json json = description(picture, name), cells = Json::array();
  for (std::size_t y = 0; y < picture.y.pixels; ++y) {
    Json& row = cells.emplace_back(Json::array());
    for (std::size_t x = 0; x < picture.x.pixels; ++x)
      row.push_back(finite_json(picture.cells[y * picture.x.pixels + x]));
  }
  json["cells"] = std::move(cells);
  return text_of(json);
}

std::string columns_of(const TensorPicture& picture, std::string_view name) {
  return raster_frame({.width = picture.x.pixels,
                       .height = picture.y.pixels,
                       .largest = static_cast<double>(picture.largest),
                       .total = static_cast<double>(picture.values_per_cell)},
                      picture.cells, text_of(description(picture, name)));
}

Json to_json(const ErrorSum& error) {
  return {{"rmse", error.rmse()},
          {"relative_error", error.relative()},
          {"cosine", error.cosine()},
          {"max_error", error.max_error()}};
}

Json to_json(const TensorComparison& comparison) {
  Json json = tensor_json(*comparison.tensor);
  json["reference_type"] =
      comparison.reference == nullptr ? Json() : Json(comparison.reference->type);
  json["bytes_saved"] = comparison.reference == nullptr ? Json() : Json(comparison.bytes_saved);
  json["reads"] = optional_json(comparison.reads);
  if (comparison.why.empty()) {
    json.update(to_json(comparison.error.all));
    json["predicted_error"] = optional_json(comparison.predicted);
  } else {
    json["error"] = comparison.why;
  }
  return json;
}

Json json_with_worst(const TensorComparison& comparison) {
  Json json = to_json(comparison), rows = Json::array(), blocks = Json::array();
  for (const RowError& one : comparison.error.worst_rows) {
    Json row{{"row", one.row}};
    row.update(to_json(one.error));
    rows.push_back(std::move(row));
  }
  for (const BlockError& one : comparison.error.worst_blocks)
    blocks.push_back(
        {{"row", one.row}, {"first", one.first}, {"rmse", one.rmse}, {"max_error", one.max_error}});
  json["worst_rows"] = std::move(rows);
  json["worst_blocks"] = std::move(blocks);
  return json;
}

Json to_json(const ModelComparison& comparison) {
  Json tensors = Json::array(), layers = Json::array(), components = Json::array();
  for (const TensorComparison& one : comparison.tensors) {
    Json& row = tensors.emplace_back(to_json(one));
    if (one.why.empty()) row["error_per_byte"] = optional_json(one.error_per_byte);
  }
  const auto add = [](Json& sums, Json sum, const ErrorSum& of) {
    sum["values"] = of.count();
    sum.update(to_json(of));
    sums.push_back(std::move(sum));
  };
  for (const auto& [layer, sum] : comparison.layers)
    add(layers, {{"layer", layer_json(layer)}}, sum);
  for (const auto& [component, sum] : comparison.components)
    add(components, {{"component", to_text(component)}}, sum);
  return {{"relative_error", comparison.all.relative()},
          {"predicted_relative_error", optional_json(comparison.predicted)},
          {"tensors", std::move(tensors)},
          {"layers", std::move(layers)},
          {"components", std::move(components)}};
}

Json to_json(const QuantizationMix& mix) {
  Json tensors = Json::array(), uniform = Json::array();
  for (const MixTensor& tensor : mix.tensors) {
    Json types = Json::array();
    for (const MixType& type : tensor.types)
      types.push_back(
          {{"type", type.type}, {"bytes", type.bytes}, {"relative_error", type.relative}});
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.type},
                       {"bytes", tensor.bytes},
                       {"values", tensor.values},
                       {"fixed", tensor.is_fixed},
                       {"rule", tensor.is_fixed ? Json() : Json(tensor.rule)},
                       {"relative_error", tensor.relative},
                       {"error_share", tensor.error_share},
                       {"error_per_byte", optional_json(tensor.error_per_byte)},
                       {"types", std::move(types)}});
  }
  for (const UniformMix& one : mix.uniform)
    uniform.push_back({{"type", one.type}, {"bytes", one.bytes}, {"relative_error", one.relative}});
  return {{"bytes", mix.bytes},
          {"relative_error", mix.relative},
          {"rows_tried", mix.rows_tried},
          {"tensors", std::move(tensors)},
          {"uniform", std::move(uniform)}};
}

}  // namespace tt
