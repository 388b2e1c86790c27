#include "api/json/model_json.h"

#include <array>
#include <cstdlib>
#include <format>

#include "api/json/version.h"
#include "api/text/csv_text.h"
#include "tracer/format/names/names.h"

namespace tt {

namespace {

Json scalar_json(const GgufScalar& scalar) {
  return std::visit(
      [](const auto& value) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, float>) {
          // 0.1F as 0.1 and not as 0.10000000149011612.
          return std::strtod(std::format("{}", value).c_str(), nullptr);
        } else {
          return value;
        }
      },
      scalar);
}

Json entry_json(const GgufEntry& entry) {
  Json out{{"key", entry.key}, {"type", entry.type}};
  if (const auto* scalar = std::get_if<GgufScalar>(&entry.value)) {
    out["value"] = scalar_json(*scalar);
    return out;
  }
  const auto& array = std::get<GgufArray>(entry.value);
  Json first = Json::array();
  for (const GgufScalar& element : array.first) first.push_back(scalar_json(element));
  out["type"] = std::format("{}[]", array.type);
  out["value"] = std::move(first);
  out["length"] = array.length;
  return out;
}

// Component derived from the weight's name.
const char* component_text(const GgufTensor& tensor) {
  return to_text(component_of(tensor.name, TensorKind::Weight));
}

}  // namespace

const char* to_text(ModelState state) {
  static constexpr std::array words = {"available", "loading", "loaded", "unloading", "failed"};
  return words[static_cast<std::size_t>(state)];
}

Json to_json(const ModelEntry& model) {
  Json out{{"id", model.id},
           {"name", model.name},
           {"path", model.path},
           {"size_bytes", model.bytes},
           {"files", model.files},
           {"importance_matrix", model.is_importance_matrix},
           {"state", to_text(model.state)},
           {"load_progress", model.load_progress},
           {"error", text_or_null(model.error)},
           {"warning", text_or_null(model.warning)}};
  if (!model.facts) return out;
  const ModelFacts& facts = *model.facts;
  Json settings = Json::object();
  for (const auto& [name, value] : facts.settings) settings[name] = value;
  out.update(Json{{"description", facts.description},
                  {"architecture", facts.architecture},
                  {"n_layers", facts.n_layers},
                  {"n_embd", facts.n_embd},
                  {"n_heads", facts.n_heads},
                  {"n_heads_kv", facts.n_heads_kv},
                  {"n_experts", facts.n_experts},
                  {"n_experts_used", facts.n_experts_used},
                  {"n_vocab", facts.n_vocab},
                  {"context", facts.context},
                  {"context_trained", facts.context_trained},
                  {"has_vocabulary", facts.has_vocabulary},
                  {"has_chat_template", facts.has_chat_template},
                  {"can_chat", facts.can_chat},
                  {"has_encoder", facts.has_encoder},
                  {"embedding_only", facts.embedding_only},
                  {"recurrent", facts.recurrent},
                  {"hybrid", facts.hybrid},
                  {"threads", facts.threads},
                  {"settings", std::move(settings)}});
  return out;
}

Json health_json(const std::optional<ModelEntry>& model) {
  const bool loading = model && model->state == ModelState::Loading;
  return {{"status", loading ? "loading" : "ok"},
          {"version", kVersion},
          {"model", model && model->facts ? Json(model->name) : Json()},
          {"model_state", model ? to_text(model->state) : "none"},
          {"load_progress", model ? model->load_progress : 0.0F},
          {"error", model ? text_or_null(model->error) : Json()},
          {"warning", model ? text_or_null(model->warning) : Json()}};
}

Json to_json(const GgufIndex& index) {
  Json files = Json::array(), metadata = Json::array(), tensors = Json::array();
  for (const ModelFile& file : index.files())
    files.push_back({{"path", file.path}, {"size", file.size}});
  for (const GgufEntry& entry : index.metadata()) metadata.push_back(entry_json(entry));
  for (const GgufTensor& tensor : index.tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"model_file", tensor.file.file},
                       {"file_offset", tensor.file.offset},
                       {"file_bytes", tensor.file.length},
                       {"type", tensor.type},
                       {"shape", tensor.ne},
                       {"layer", layer_json(layer_of(tensor.name))},
                       {"component", component_text(tensor)}});
  }
  return {{"files", std::move(files)},
          {"metadata", std::move(metadata)},
          {"tensors", std::move(tensors)}};
}

std::string csv_of(const GgufIndex& index) {
  std::string out =
      "tensor_name,file_offset,size_bytes,layer_id,component_type,model_file,tensor_type,shape\r\n";
  for (const GgufTensor& tensor : index.tensors()) {
    const LayerId layer = layer_of(tensor.name);
    out += std::format("{},{},{},{},{},{},{},{}x{}x{}x{}\r\n", csv_text(tensor.name),
                       tensor.file.offset, tensor.file.length,
                       layer == kNoLayer ? "" : std::to_string(layer.v), component_text(tensor),
                       tensor.file.file, tensor.type, tensor.ne[0], tensor.ne[1], tensor.ne[2],
                       tensor.ne[3]);
  }
  return out;
}

}  // namespace tt
