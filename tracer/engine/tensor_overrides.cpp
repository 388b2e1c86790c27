#include "tracer/engine/tensor_overrides.h"

#include <algorithm>
#include <format>
#include <map>

#include "tracer/text/join.h"

namespace tt {

namespace {

// As llama.cpp's command line does.
constexpr const char* kExperts = "\\.ffn_(up|down|gate|gate_up)_(ch|)exps";

std::map<std::string, ggml_backend_buffer_type_t> buffer_types() {
  std::map<std::string, ggml_backend_buffer_type_t> types;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i)
    if (ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(ggml_backend_dev_get(i)))
      types.emplace(ggml_backend_buft_name(type), type);
  return types;
}

}  // namespace

std::expected<TensorOverrides, std::string> TensorOverrides::of(const ModelOptions& options) {
  TensorOverrides result;
  const auto add = [&](std::string pattern, ggml_backend_buffer_type_t type) {
    result.patterns_.push_back(std::move(pattern));
    result.overrides_.push_back({.pattern = result.patterns_.back().c_str(), .buft = type});
  };
  const auto types = buffer_types();
  for (const std::string& text : options.tensor_overrides) {
    const std::size_t equals = text.rfind('=');
    const auto type = types.find(text.substr(equals + 1));
    if (type == types.end()) {
      return std::unexpected(std::format(
          "--override-tensor: no buffer is called \"{}\". Use one of {}.", text.substr(equals + 1),
          join(types, [](const auto& of) { return of.first; })));
    }
    add(text.substr(0, equals), type->second);
  }
  if (options.cpu_moe_layers == INT32_MAX) {
    add(kExperts, ggml_backend_cpu_buffer_type());
  } else {
    for (std::int32_t layer = 0; layer < options.cpu_moe_layers; ++layer)
      add(std::format("blk\\.{}{}", layer, kExperts), ggml_backend_cpu_buffer_type());
  }
  if (!result.overrides_.empty())
    result.overrides_.push_back({.pattern = nullptr, .buft = nullptr});
  return result;
}

const llama_model_tensor_buft_override* TensorOverrides::overrides() const {
  return overrides_.empty() ? nullptr : overrides_.data();
}

}  // namespace tt
