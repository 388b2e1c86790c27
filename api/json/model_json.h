// Models and their files as JSON and CSV (api/openapi.yaml).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/json/json.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/request/model_facts.h"

namespace tt {

enum class ModelState : std::uint8_t { Available, Loading, Loaded, Unloading, Failed };
const char* to_text(ModelState);

// A model that this server knows, loaded or not.
struct ModelEntry {
  std::string id{};  // used in REST paths
  std::string name{};
  std::string path{};       // path of the first file
  std::uint64_t bytes = 0;  // total of all files
  std::size_t files = 1;
  bool is_importance_matrix = false;  // a file of llama-imatrix, not a model
  ModelState state = ModelState::Available;
  float load_progress = 0;            // 0..1
  std::string error{};                // why loading failed and what to do
  std::string warning{};              // llama.cpp behaves unexpectedly, or the file changed
  std::optional<ModelFacts> facts{};  // set once loaded
};

Json to_json(const ModelEntry& model);
// `model`: the model that is loaded, loading or failed to load; nullopt: none.
Json health_json(const std::optional<ModelEntry>& model);

Json to_json(const GgufIndex& index);
// RFC 4180 with the header tensor_name,file_offset,size_bytes,
// layer_id,component_type,model_file,tensor_type,shape and one line per
// tensor. `file` is the index of the file, `shape` all four dimensions ("64x256x1x1"); `layer`
// is empty for tensors outside of layers.
std::string csv_of(const GgufIndex& index);

}  // namespace tt
