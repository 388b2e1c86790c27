#include "api/json/analysis/compression_json.h"

#include "tracer/format/names/names.h"

namespace tt {

namespace {

constexpr unsigned kF16 = 16, kF32 = 32;

Json sum_json(const Compression& sum) {
  return {{"tensors", sum.tensors},       {"elements", sum.elements},
          {"bytes", sum.bytes.v},         {"bits_per_weight", sum.bits_per_weight()},
          {"ratio_f16", sum.ratio(kF16)}, {"ratio_f32", sum.ratio(kF32)}};
}

// Rows of sums, each with its key first.
template <class Rows, class KeyJson>
Json sums_json(const char* name, const Rows& rows, KeyJson key_json) {
  Json out = Json::array();
  for (const auto& row : rows) {
    Json json{{name, key_json(row.key)}};
    json.update(sum_json(row.sum));
    out.push_back(std::move(json));
  }
  return out;
}

}  // namespace

std::vector<WeightSize> weights_of(const GgufIndex& index) {
  std::vector<WeightSize> weights;
  for (const GgufTensor& tensor : index.tensors()) {
    weights.push_back({.name = tensor.name,
                       .type = tensor.type,
                       .layer = layer_of(tensor.name),
                       .component = component_of(tensor.name, TensorKind::Weight),
                       .elements = elements_of(tensor.ne),
                       .bytes = Bytes{tensor.file.length}});
  }
  return weights;
}

Json to_json(const CompressionReport& report) {
  Json weights = Json::array();
  for (const WeightSize& weight : report.weights) {
    Json json{{"name", weight.name},
              {"type", weight.type},
              {"layer", layer_json(weight.layer)},
              {"component", to_text(weight.component)}};
    Json sum = sum_json({.tensors = 1, .elements = weight.elements, .bytes = weight.bytes});
    sum.erase("tensors");
    json.update(sum);
    weights.push_back(std::move(json));
  }
  return {{"total", sum_json(report.total)},
          {"types", sums_json("type", report.types, [](const std::string& type) { return type; })},
          {"layers", sums_json("layer", report.layers, layer_json)},
          {"components", sums_json("component", report.components,
                                   [](Component component) { return to_text(component); })},
          {"weights", std::move(weights)}};
}

}  // namespace tt
