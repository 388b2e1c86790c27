// llama.cpp used without anything of ours: what the engine's answers are compared with.
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
  // As llama.cpp's cb_eval: asked before (answer: whether to show it) and told after a node ran.
  using Watch = std::function<bool(const ggml_tensor& node, bool ask)>;

  // The context is made as the engine makes it from the same options.
  PlainLlama(const std::filesystem::path& model, const ContextOptions& options, Watch watch = {},
             bool embeddings = false);

  // Evaluates the tokens after those before them, in chunks of one ubatch, and
  // gives the most likely next one. Throws when llama.cpp refuses.
  std::int32_t decode(std::span<const std::int32_t> tokens);
  // The prompt and then the most likely tokens.
  std::vector<std::int32_t> greedy(std::span<const std::int32_t> prompt, std::size_t count);
  // By token id, after the last token that was evaluated.
  std::vector<float> logits() const;
  // What an embedding model makes of the text.
  std::vector<float> embedding(std::span<const std::int32_t> tokens);

 private:
  static bool on_eval(ggml_tensor* tensor, bool ask, void* self);

  Watch watch_;
  LlamaModel model_;
  LlamaContext context_;
};

// A tensor's values, row by row, from whatever device it lives on.
std::vector<float> floats_of(const ggml_tensor& tensor);
std::vector<std::int64_t> ints_of(const ggml_tensor& tensor);

}  // namespace tt::test
