// llama.cpp's options --override-tensor and --n-cpu-moe as parameters of a load.
#pragma once

#include <llama.h>

#include <deque>
#include <expected>
#include <string>
#include <vector>

#include "tracer/request/model_options.h"

namespace tt {

class TensorOverrides {
 public:
  // The error lists the buffer types that exist. Call after load_backends().
  static std::expected<TensorOverrides, std::string> of(const ModelOptions& options);

  // For llama_model_params; null: none. This object owns them.
  const llama_model_tensor_buft_override* overrides() const;

 private:
  std::deque<std::string> patterns_;
  std::vector<llama_model_tensor_buft_override> overrides_;  // the last one is empty
};

}  // namespace tt
