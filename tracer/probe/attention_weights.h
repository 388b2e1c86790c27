// The attention weights of a FLASH_ATTN_EXT op, which computes them and does not put them out: from
// its sources, as ggml's CPU kernel computes them, with mask, scale, ALiBi, soft cap and sinks, but
// in f32. Inference thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

struct ggml_tensor;

namespace tt {

// Keys, queries, heads, streams: the shape that the output of SOFT_MAX has without flash attention.
std::array<std::uint64_t, 4> attention_shape(const ggml_tensor& flash_attention);

// Whether the values of its sources can be read as numbers.
bool has_readable_attention(const ggml_tensor& flash_attention);

// The weights in the order of attention_shape(). The sources must be complete and not yet
// overwritten; they are until the next op has begun. `scratch` is reused between calls.
std::vector<float> attention_weights(const ggml_tensor& flash_attention,
                                     std::vector<std::byte>& scratch);

}  // namespace tt
