// Copies a generated model with changed metadata.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <vector>

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

// Copies the model. `set(new_file)` changes metadata; `edit(tensor, data)` may change name, type,
// shape (ne) and bytes of each tensor. Afterwards the data has the size of the tensor: it is cut,
// or repeated.
template <class Set, class Edit>
std::filesystem::path with_edits(const std::filesystem::path& model,
                                 const std::filesystem::path& out, Set set, Edit edit) {
  ggml_context* tensors = nullptr;
  const GgufContext whole(gguf_init_from_file(model.c_str(), {.no_alloc = false, .ctx = &tensors}));
  const GgmlContext owner(tensors);
  const GgufContext other(gguf_init_empty());
  gguf_set_kv(other.get(), whole.get());
  set(other.get());
  std::deque<std::vector<char>> kept;  // until the file is written
  for (std::int64_t i = 0; i < gguf_get_n_tensors(whole.get()); ++i) {
    ggml_tensor tensor = *ggml_get_tensor(tensors, gguf_get_tensor_name(whole.get(), i));
    const char* bytes = static_cast<const char*>(tensor.data);
    std::vector<char>& data = kept.emplace_back(bytes, bytes + ggml_nbytes(&tensor));
    edit(tensor, data);
    const auto block = ggml_blck_size(tensor.type);
    tensor.ne[0] = (tensor.ne[0] + block - 1) / block * block;  // whole blocks
    tensor.nb[0] = ggml_type_size(tensor.type);
    tensor.nb[1] = ggml_row_size(tensor.type, tensor.ne[0]);
    tensor.nb[2] = tensor.nb[1] * static_cast<std::size_t>(tensor.ne[1]);
    tensor.nb[3] = tensor.nb[2] * static_cast<std::size_t>(tensor.ne[2]);
    const std::size_t size = ggml_nbytes(&tensor);
    const std::size_t had = std::max<std::size_t>(data.size(), 1);
    data.resize(std::max(size, had));
    for (std::size_t at = had; at < size; ++at) data[at] = data[at - had];
    tensor.data = data.data();
    gguf_add_tensor(other.get(), &tensor);
  }
  EXPECT_TRUE(gguf_write_to_file(other.get(), out.c_str(), false));
  return out;
}

}  // namespace tt::test
