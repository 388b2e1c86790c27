// The weights that a model check repacks (model_check.h): one of each type and remainder of its
// shape, which select the code that repacks and multiplies. Repacking all takes seconds, and as
// much memory as the model.
#pragma once

#include <ggml-backend.h>
#include <llama.h>

#include <deque>
#include <string>
#include <vector>

namespace tt {

class GgufIndex;

// Buffer types of the CPU with repacked weights. Call after load_backends().
std::vector<ggml_backend_buffer_type_t> repacked_buffer_types();

class RepackSamples {
 public:
  // Only weights that are always multiplied are samples: the library does not check whether an
  // overridden buffer type suits the operation.
  explicit RepackSamples(const GgufIndex& model);
  RepackSamples(const RepackSamples&) = delete;
  RepackSamples& operator=(const RepackSamples&) = delete;

  // For llama_model_params, with use_extra_bufts = false; null: no samples. This object owns them.
  const llama_model_tensor_buft_override* overrides() const;
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::deque<std::string> patterns_;
  std::vector<llama_model_tensor_buft_override> overrides_;
};

}  // namespace tt
