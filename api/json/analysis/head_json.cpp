#include "api/json/analysis/head_json.h"

#include "tracer/format/model/graph_template.h"

namespace tt {

namespace {

Json weight_json(const HeadWeight& weight) {
  const bool by_columns = weight.geometry.by_columns;
  Json heads = Json::array();
  for (std::uint32_t h = 0; h < weight.heads.size(); ++h) {
    heads.push_back({{"head", h},
                     {"offset", weight.range(h, 0).offset},
                     {"reads", weight.heads[h].reads},
                     {"bytes_read", weight.heads[h].read.v}});
  }
  return {{"name", weight.name},
          {"role", to_text(weight.role)},
          {"layer", layer_json(weight.layer)},
          {"file",
           {{"index", weight.file.file},
            {"offset", weight.file.offset},
            {"length", weight.file.length}}},
          {"head_bytes", heads.empty() ? Json() : Json(weight.head_bytes().v)},
          {"stretch_bytes", heads.empty() ? Json() : Json(weight.geometry.bytes.v)},
          {"stretches", heads.empty() ? Json() : Json(weight.rows)},
          {"stretch_stride", by_columns ? Json(weight.geometry.row_stride) : Json()},
          {"reads", weight.reads},
          {"bytes_read", weight.read.v},
          {"heads", std::move(heads)}};
}

Json step_json(const KvStep& step) {
  Json layers = Json::array();
  for (const KvLayer& layer : step.layers) {
    layers.push_back({{"layer", layer_json(layer.layer)},
                      {"fresh", layer.fresh.v},
                      {"cached", layer.cached.v},
                      {"other", layer.other.v},
                      {"written", layer.written.v}});
  }
  return {{"step", step.step.v},
          {"phase", to_text(step.phase)},
          {"first_token", step.first_token},
          {"n_tokens", step.n_tokens},
          {"state_read", step.state_read.v},
          {"state_written", step.state_written.v},
          {"layers", std::move(layers)}};
}

}  // namespace

Json to_json(const HeadTable& table) {
  Json weights = Json::array();
  for (const HeadWeight& weight : table.weights) weights.push_back(weight_json(weight));
  return {{"heads", table.heads}, {"kv_heads", table.kv_heads}, {"weights", std::move(weights)}};
}

Json to_json(const Page<KvStep>& steps) { return page_json("steps", steps, step_json); }

}  // namespace tt
