// llama.cpp without this project's code: the reference for the engine's output.
#pragma once

#include <llama.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "tracer/gguf/llama_handles.h"
#include "tracer/request/model_options.h"

namespace tt::test {

class PlainLlama {
 public:
  // As llama.cpp's cb_eval: called with ask = true before a node runs (the result: whether to
  // call again after it), and with ask = false after it.
  using Watch = std::function<bool(const ggml_tensor& node, bool ask)>;

  // The context is created with the options that the engine uses.
  PlainLlama(const std::filesystem::path& model, const ContextOptions& options, Watch watch = {},
             bool embeddings = false);

  // Evaluates the tokens after those before them, in chunks of one ubatch. Returns the most
  // likely next token. Throws on a llama.cpp error.
  std::int32_t decode(std::span<const std::int32_t> tokens);
  // The prompt and then the most likely tokens.
  std::vector<std::int32_t> greedy(std::span<const std::int32_t> prompt, std::size_t count);
  // Of the last evaluated token, by token id.
  std::vector<float> logits() const;
  // The embedding of the tokens, for an embedding model.
  std::vector<float> embedding(std::span<const std::int32_t> tokens);

 private:
  static bool on_eval(ggml_tensor* tensor, bool ask, void* self);

  Watch watch_;
  LlamaModel model_;
  LlamaContext context_;
};

// A tensor's values, row by row, from any device.
std::vector<float> floats_of(const ggml_tensor& tensor);
std::vector<std::int64_t> ints_of(const ggml_tensor& tensor);

}  // namespace tt::test
