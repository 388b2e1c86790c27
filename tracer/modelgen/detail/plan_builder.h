#pragma once

#include <gguf.h>

#include <cstdint>
#include <format>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/modelgen/model_plan.h"

// Collects the output of the shape builders: metadata with the architecture's prefix, and
// tensors in file order.
namespace tt::modelgen::detail {

inline std::uint32_t u32(std::int64_t value) { return static_cast<std::uint32_t>(value); }

class PlanBuilder {
 public:
  PlanBuilder(const NamedShape& shape, const Dims& dims, const ModelSpec& spec);

  // Metadata; `key` is without the architecture's prefix.
  void set(std::string_view key, std::uint32_t value);
  void set(std::string_view key, float value);
  void set(std::string_view key, bool value);
  void set(std::string_view key, std::string_view value);
  gguf_context* gguf() { return plan_.metadata.get(); }

  // Adds a matrix [ne0, ne1(, ne2)] that a mix may quantize. Standard deviation 1/sqrt(ne0), so
  // that activations keep their magnitude from layer to layer.
  void matrix(std::string name, TensorClass cls, std::vector<std::int64_t> ne);
  // Adds a small tensor that stays F32.
  void fixed(std::string name, std::vector<std::int64_t> ne, Draw draw);
  void norm(std::string name, std::int64_t size) { fixed(std::move(name), {size}, {1.0F, 0.0F}); }
  void bias(std::string name, std::vector<std::int64_t> ne) {
    fixed(std::move(name), std::move(ne), {0.0F, 0.02F});
  }

  // Adds token_embd.weight; adds output.weight unless the embedding is tied.
  void embedding();
  void output();

  const Dims& dims() const { return dims_; }
  const ModelSpec& spec() const { return spec_; }
  ModelPlan take() { return std::move(plan_); }

 private:
  std::string key(std::string_view name) const;

  std::string architecture_;
  Dims dims_;
  const ModelSpec& spec_;
  ModelPlan plan_;
};

// "blk.3.attn_q.weight"
inline std::string layer_name(std::int64_t layer, std::string_view rest) {
  return std::format("blk.{}.{}", layer, rest);
}

}  // namespace tt::modelgen::detail
