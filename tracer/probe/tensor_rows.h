// Reads the values of a tensor row by row, as f32, from any device. Call only when the tensor is
// complete and not yet overwritten.
#pragma once

#include <ggml-backend.h>
#include <ggml.h>

#include <cstddef>
#include <span>
#include <vector>

namespace tt {

// Whether its type can be converted to f32 (32-bit integers are) and its rows are contiguous.
inline bool has_readable_rows(const ggml_tensor& tensor) {
  const ggml_type_traits* traits = ggml_get_type_traits(tensor.type);
  const bool converts = tensor.type == GGML_TYPE_F32 || tensor.type == GGML_TYPE_I32 ||
                        (traits != nullptr && traits->to_float != nullptr);
  return converts && tensor.nb[0] == ggml_type_size(tensor.type);
}

inline ggml_backend_buffer_t memory_of(const ggml_tensor& tensor) {
  return tensor.view_src == nullptr ? tensor.buffer : tensor.view_src->buffer;
}

// Whether it is in memory.
inline bool has_memory(const ggml_tensor& tensor) {
  return memory_of(tensor) != nullptr && tensor.data != nullptr;
}

// Whether a tensor with memory is in another layout than ggml's (a weight that was repacked for the
// processor): such a buffer has no function to read.
inline bool is_repacked(const ggml_tensor& tensor) {
  ggml_backend_buffer_t buffer = memory_of(tensor);
  ggml_backend_dev_t device = ggml_backend_buft_get_device(ggml_backend_buffer_get_type(buffer));
  return !ggml_backend_buffer_is_host(buffer) && device != nullptr &&
         ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
}

// Calls `row(std::span<const float>)` for every row of a tensor with readable rows, in order.
// `scratch` is reused between calls.
template <class Row>
void for_each_row(const ggml_tensor& tensor, std::vector<std::byte>& scratch, Row row) {
  const auto values = static_cast<std::size_t>(tensor.ne[0]);
  const std::size_t row_bytes = ggml_row_size(tensor.type, tensor.ne[0]);
  scratch.resize(values * sizeof(float) + row_bytes);  // the values, then the row as it is stored
  auto* const out = reinterpret_cast<float*>(scratch.data());
  std::byte* const raw = scratch.data() + values * sizeof(float);
  const auto* const integers = reinterpret_cast<const std::int32_t*>(raw);
  for (std::int64_t i3 = 0; i3 < tensor.ne[3]; ++i3) {
    for (std::int64_t i2 = 0; i2 < tensor.ne[2]; ++i2) {
      for (std::int64_t i1 = 0; i1 < tensor.ne[1]; ++i1) {
        const std::size_t at = static_cast<std::size_t>(i1) * tensor.nb[1] +
                               static_cast<std::size_t>(i2) * tensor.nb[2] +
                               static_cast<std::size_t>(i3) * tensor.nb[3];
        if (tensor.type == GGML_TYPE_F32) {
          ggml_backend_tensor_get(&tensor, out, at, row_bytes);
        } else {
          ggml_backend_tensor_get(&tensor, raw, at, row_bytes);
          if (tensor.type == GGML_TYPE_I32) {
            for (std::size_t i = 0; i < values; ++i) out[i] = static_cast<float>(integers[i]);
          } else {
            ggml_get_type_traits(tensor.type)->to_float(raw, out, tensor.ne[0]);
          }
        }
        row(std::span<const float>(out, values));
      }
    }
  }
}

// All values of a tensor with readable rows, in order.
inline std::vector<float> row_values(const ggml_tensor& tensor, std::vector<std::byte>& scratch) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(ggml_nelements(&tensor)));
  for_each_row(tensor, scratch, [&](std::span<const float> row) {
    values.insert(values.end(), row.begin(), row.end());
  });
  return values;
}

}  // namespace tt
