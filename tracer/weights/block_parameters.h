// The parameters with which a quantized block is decoded: a value is q * scale - minimum, where q
// is the stored integer, or an entry of the type's codebook.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tt {

// Of one block, such as 256 values of Q4_K in 8 sub-blocks. Types without sub-blocks have one.
struct BlockParameters {
  std::vector<float> scales;  // per sub-block, as multiplied: super-block scale included
  std::vector<float> minima;  // the same; empty: the type has none
};

struct BlockLayout {
  std::size_t values = 0;      // per block
  std::size_t sub_values = 0;  // per sub-block
  std::size_t bytes = 0;       // per block
  bool has_minima = false;
  // `block`: `bytes` bytes. Appends to `out`.
  void (*decode)(std::span<const std::byte> block, BlockParameters& out) = nullptr;
};

// Of a type by ggml's name ("q4_K"); null: the type has no blocks (f16), or is not known.
const BlockLayout* block_layout(std::string_view type);

}  // namespace tt
