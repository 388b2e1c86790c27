#pragma once

#include <ggml.h>

#include <expected>
#include <span>
#include <string>
#include <vector>

#include "tracer/gguf/llama_handles.h"
#include "tracer/modelgen/model_spec.h"

// Plan of a model, without weights: metadata and tensors in file order. Planning the 637 MiB
// of tinyllama-1.1b takes milliseconds.
namespace tt::modelgen {

// Distribution of random weights: normal with this mean and standard deviation (0: constant).
struct Draw {
  float mean = 0;
  float deviation = 0;
  float hot = 1;  // the first quarter of the rows has `hot` times the deviation
};

struct PlannedTensor {
  std::string name;
  std::vector<std::int64_t> ne;  // 1 to 4 sizes, ne[0] contiguous, as in ggml
  TensorClass cls = TensorClass::Fixed;
  ggml_type type = GGML_TYPE_F32;
  Draw draw;

  std::int64_t elements() const;
  std::size_t bytes() const;  // without padding
};

struct ModelPlan {
  GgufContext metadata;                // key-value pairs only, no split.* keys
  std::vector<PlannedTensor> tensors;  // file order: layers as 0, 1, 10, 11, ..., 2, 20, ...
  std::size_t weight_bytes() const;
};

std::expected<ModelPlan, ModelError> plan_model(const ModelSpec& spec);

// llama.cpp's rule for the tensors that Q4_K_M stores as Q6_K: the first and
// last eighth and every third between, counted in file order.
bool promoted_by_q4_k_m(std::size_t index, std::size_t count);

// 0, 1, 10, 11, ..., 2, 20, ...: the order in which a converter reads the layers of a
// checkpoint whose tensors are sorted by name.
std::vector<std::int64_t> file_order(std::int64_t layers);

}  // namespace tt::modelgen
