// Copies a generated model with changed metadata.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "tracer/gguf/llama_handles.h"

namespace tt::test {

// Copies the weights; `copy_metadata(new, old)` copies metadata from the old file to the new one.
template <class Copy>
std::filesystem::path with_metadata(const std::filesystem::path& model,
                                    const std::filesystem::path& out, Copy copy_metadata) {
  ggml_context* tensors = nullptr;
  const GgufContext whole(gguf_init_from_file(model.c_str(), {.no_alloc = false, .ctx = &tensors}));
  const GgmlContext owner(tensors);
  const GgufContext other(gguf_init_empty());
  copy_metadata(other.get(), whole.get());
  for (std::int64_t i = 0; i < gguf_get_n_tensors(whole.get()); ++i) {
    gguf_add_tensor(other.get(), ggml_get_tensor(tensors, gguf_get_tensor_name(whole.get(), i)));
  }
  EXPECT_TRUE(gguf_write_to_file(other.get(), out.c_str(), false));
  return out;
}

// Copies the model and its metadata; `change` then sets values.
template <class Change>
std::filesystem::path with_changes(const std::filesystem::path& model,
                                   const std::filesystem::path& out, Change change) {
  return with_metadata(model, out, [&](gguf_context* other, const gguf_context* whole) {
    gguf_set_kv(other, whole);
    change(other);
  });
}

}  // namespace tt::test
