// RAII wrappers for llama.cpp's C handles.
#pragma once

#include <gguf.h>
#include <llama.h>

#include <memory>

namespace tt {

template <auto Free>
struct FreeWith {
  template <class T>
  void operator()(T* handle) const noexcept {
    Free(handle);
  }
};

using LlamaModel = std::unique_ptr<llama_model, FreeWith<llama_model_free>>;
using LlamaContext = std::unique_ptr<llama_context, FreeWith<llama_free>>;
using LlamaSampler = std::unique_ptr<llama_sampler, FreeWith<llama_sampler_free>>;
using GgufContext = std::unique_ptr<gguf_context, FreeWith<gguf_free>>;
using GgmlContext = std::unique_ptr<ggml_context, FreeWith<ggml_free>>;

}  // namespace tt
