// The logit lens: what a model would say if a layer were its last one. The residual stream after
// the layer goes through the ops that the model's own graph has between its last layer and the
// logits: final norm, output weight, and what else the architecture has there (bias, scale, soft
// cap). They are taken from the graph of the step, so no architecture is known here. Inference
// thread only.
#pragma once

#include <ggml-backend.h>
#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tracer/format/model/lens_values.h"
#include "tracer/format/model/step.h"
#include "tracer/gguf/llama_handles.h"

namespace tt {

using BackendHandle = std::unique_ptr<ggml_backend, FreeWith<ggml_backend_free>>;
using BackendBuffer = std::unique_ptr<ggml_backend_buffer, FreeWith<ggml_backend_buffer_free>>;

// A copy of these ops, with the model's weights. The model must outlive it.
class OutputOps {
 public:
  // `logits`: the output of the model's graph, of one token. Its sources must exist during the
  // call. Null: the ops between the last layer and the logits are not a chain over one token that
  // the CPU can run, as when the weights are on another device.
  static std::unique_ptr<OutputOps> of(const ggml_tensor& logits, std::uint32_t threads);

  std::size_t residual_size() const { return static_cast<std::size_t>(input_->ne[0]); }
  // The logits by token id. `residual` has residual_size() values. Valid until the next call.
  std::span<const float> logits(std::span<const float> residual);

 private:
  OutputOps() = default;

  BackendHandle cpu_;
  GgmlContext context_;
  BackendBuffer buffer_;
  ggml_tensor* input_ = nullptr;
  ggml_tensor* output_ = nullptr;
  ggml_cgraph* graph_ = nullptr;
  std::vector<float> logits_;
};

// Text of a token, as bytes.
using TokenText = std::function<std::string(std::int32_t token)>;

// What logits say, as the values of kLensValues (step.h). `chosen`: the token that followed.
OutputValues lens_values(OpId op, std::span<const float> logits, std::optional<std::int32_t> chosen,
                         const TokenText& text);

// Collects residual streams and logits of a step while its graph runs, and computes what they say
// when the token that follows is known.
class LogitLens {
 public:
  // Whether an output is a residual stream or the logits, by its name.
  static bool uses(const std::string& name);

  void begin_step(std::uint32_t threads);
  // `output` has just been computed; its last row is that of the step's last token.
  void take(OpId op, const ggml_tensor& output);
  // What was taken since begin_step(), by op. `not_captured` is increased by the number of residual
  // streams that did not lead to logits.
  std::vector<OutputValues> finish(std::optional<std::int32_t> chosen, const TokenText& text,
                                   std::uint64_t& not_captured);

 private:
  struct Row {
    OpId op;
    std::vector<float> values;
  };
  std::uint32_t threads_ = 1;
  std::vector<Row> residuals_;
  std::optional<Row> logits_;
  std::unique_ptr<OutputOps> ops_;
};

}  // namespace tt
