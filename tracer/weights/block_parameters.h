// The parameters with which a quantized block is decoded: a value is q * scale - minimum, where q
// is the stored integer, or an entry of the type's codebook.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tt {

// Of one block, such as 256 values of Q4_K in 8 sub-blocks. Types without sub-blocks have one.
struct BlockParameters {
  std::vector<float> scales;  // per sub-block, as multiplied: super-block scale included
  std::vector<float> minima;  // the same; empty: the type has none
  // Of types with super-blocks (BlockLayout::has_super_block), what these are made of:
  // scales[i] = super_scale * scale_factors[i], minima[i] = super_minimum * minimum_factors[i].
  // ggml calls them d and dmin. A factor is what the few bits of the sub-block stand for: in Q4_K,
  // 0 to 63; in Q6_K, -128 to 127; in IQ2, odd eighths.
  float super_scale = 0, super_minimum = 0;
  std::vector<float> scale_factors, minimum_factors;

  void clear();
  void add_scale(float factor);    // of super_scale
  void add_minimum(float factor);  // of super_minimum
};

// How the scale and the minimum of one sub-block are stored: as multiples of those of its
// super-block.
struct SuperBlock {
  float scale = 0, scale_factor = 0;
  std::optional<float> minimum{}, minimum_factor{};  // nullopt: the type has none
};

struct BlockLayout {
  std::size_t values = 0;      // per block
  std::size_t sub_values = 0;  // per sub-block
  std::size_t bytes = 0;       // per block
  bool has_minima = false;
  bool has_super_block = false;
  // `block`: `bytes` bytes. Replaces `out`.
  void decode(std::span<const std::byte> block, BlockParameters& out) const {
    out.clear();
    append(block, out);
  }
  // Of a block that was decoded; nullopt: the type has no super-blocks.
  std::optional<SuperBlock> super_block(const BlockParameters& of, std::size_t sub_block) const;
  void (*append)(std::span<const std::byte> block, BlockParameters& out) = nullptr;
};

// Of a type by ggml's name ("q4_K"); null: the type has no blocks (f16), or is not known.
const BlockLayout* block_layout(std::string_view type);

}  // namespace tt
