#include "tracer/modelgen/detail/plan_builder.h"

#include <cmath>
#include <utility>

namespace tt::modelgen::detail {

PlanBuilder::PlanBuilder(const NamedShape& shape, const Dims& dims, const ModelSpec& spec)
    : architecture_(shape.architecture), dims_(dims), spec_(spec) {
  plan_.metadata.reset(gguf_init_empty());
  gguf_set_val_str(gguf(), "general.architecture", architecture_.c_str());
  gguf_set_val_str(gguf(), "general.name", std::string(shape.name).c_str());
  gguf_set_val_str(gguf(), "general.description", std::string(shape.description).c_str());
  gguf_set_val_u32(gguf(), "general.quantization_version", GGML_QNT_VERSION);
  set("block_count", static_cast<std::uint32_t>(dims.layers));
  set("context_length", static_cast<std::uint32_t>(dims.context));
  set("embedding_length", static_cast<std::uint32_t>(dims.embd));
  set("feed_forward_length", static_cast<std::uint32_t>(dims.ff));
}

std::string PlanBuilder::key(std::string_view name) const {
  return std::format("{}.{}", architecture_, name);
}

void PlanBuilder::set(std::string_view name, std::uint32_t value) {
  gguf_set_val_u32(gguf(), key(name).c_str(), value);
}
void PlanBuilder::set(std::string_view name, float value) {
  gguf_set_val_f32(gguf(), key(name).c_str(), value);
}
void PlanBuilder::set(std::string_view name, bool value) {
  gguf_set_val_bool(gguf(), key(name).c_str(), value);
}
void PlanBuilder::set(std::string_view name, std::string_view value) {
  gguf_set_val_str(gguf(), key(name).c_str(), std::string(value).c_str());
}

void PlanBuilder::matrix(std::string name, TensorClass cls, std::vector<std::int64_t> ne) {
  const float deviation = 1.0F / std::sqrt(static_cast<float>(ne.front()));
  plan_.tensors.push_back(
      {std::move(name), std::move(ne), cls, GGML_TYPE_F32, Draw{0.0F, deviation}});
}

void PlanBuilder::fixed(std::string name, std::vector<std::int64_t> ne, Draw draw) {
  plan_.tensors.push_back(
      {std::move(name), std::move(ne), TensorClass::Fixed, GGML_TYPE_F32, draw});
}

void PlanBuilder::embedding() {
  matrix("token_embd.weight", TensorClass::Embedding, {dims_.embd, dims_.vocab});
}

void PlanBuilder::output() {
  if (!spec_.tied) {
    matrix("output.weight", TensorClass::Output, {dims_.embd, dims_.vocab});
  }
}

}  // namespace tt::modelgen::detail
