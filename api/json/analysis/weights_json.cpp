#include "api/json/analysis/weights_json.h"

#include "tracer/format/names/names.h"

namespace tt {

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

Json to_json(const ErrorSum& error) {
  return {{"rmse", error.rmse()},
          {"relative_error", error.relative()},
          {"cosine", error.cosine()},
          {"max_error", error.max_error()}};
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
                       {"relative_error", tensor.relative},
                       {"error_share", tensor.error_share},
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
