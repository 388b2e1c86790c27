// Models and their files as JSON and CSV (api/openapi.yaml): values in, text out.
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

// A model that this server has, loaded or not.
struct ModelEntry {
  std::string id{};  // names it in paths
  std::string name{};
  std::string path{};       // of the first file
  std::uint64_t bytes = 0;  // of all files
  std::size_t files = 1;
  ModelState state = ModelState::Available;
  float load_progress = 0;            // 0..1
  std::string error{};                // why it failed, and what to do
  std::string warning{};              // the library does not behave as tested, or the file changed
  std::optional<ModelFacts> facts{};  // once loaded
};

Json to_json(const ModelEntry& model);
// `model`: the one that is loaded or loading, or failed to; none: no such.
Json health_json(const std::optional<ModelEntry>& model);

Json to_json(const GgufIndex& index);
// RFC 4180: name,file,offset,size,type,shape,layer,component and a line per
// tensor. `file` is the index of its file, `shape` all four sizes ("64x256x1x1"),
// `layer` empty outside of any.
std::string csv_of(const GgufIndex& index);

}  // namespace tt
