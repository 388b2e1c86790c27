#include "tracer/weights/block_parameters.h"

#include <ggml.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tracer/weights/ggml_type_name.h"

namespace tt {

namespace {

using Block = std::span<const std::byte>;

std::uint32_t byte_at(Block block, std::size_t at) {
  return std::to_integer<std::uint32_t>(block[at]);
}
std::uint32_t half_at(Block block, std::size_t at) {
  return byte_at(block, at) | byte_at(block, at + 1) << 8U;
}
std::uint32_t word_at(Block block, std::size_t at) {
  return half_at(block, at) | half_at(block, at + 2) << 16U;
}
float f16_at(Block block, std::size_t at) {
  return ggml_fp16_to_fp32(static_cast<ggml_fp16_t>(half_at(block, at)));
}
// Four bits.
std::uint32_t nibble_at(Block block, std::size_t at, std::size_t i) {
  return byte_at(block, at + i / 2) >> (4 * (i % 2)) & 15U;
}

// The only parameter is the scale, `kAt` bytes from the begin of the block.
template <std::size_t kAt = 0>
void scale_only(Block block, BlockParameters& out) {
  out.scales.push_back(f16_at(block, kAt));
}

void scale_and_minimum(Block block, BlockParameters& out) {
  out.scales.push_back(f16_at(block, 0));
  out.minima.push_back(-f16_at(block, 2));  // added in the file
}

// scales[16] (4 bits of scale, 4 of minimum), values[64], scale, scale of the minima.
void q2_k(Block block, BlockParameters& out) {
  out.super_scale = f16_at(block, 80);
  out.super_minimum = f16_at(block, 82);
  for (std::size_t i = 0; i < 16; ++i) {
    out.add_scale(static_cast<float>(byte_at(block, i) & 15U));
    out.add_minimum(static_cast<float>(byte_at(block, i) >> 4U));
  }
}

// upper bits[32], values[64], scales[12] (16 of 6 bits), scale.
void q3_k(Block block, BlockParameters& out) {
  constexpr std::size_t kScales = 96;
  out.super_scale = f16_at(block, 108);
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint32_t low = byte_at(block, kScales + i % 8) >> (i < 8 ? 0U : 4U) & 15U;
    const std::uint32_t high = byte_at(block, kScales + 8 + i % 4) >> (2 * (i / 4)) & 3U;
    out.add_scale(static_cast<float>(low | high << 4U) - 32);
  }
}

// scale, scale of the minima, 12 bytes with 8 scales and 8 minima of 6 bits.
void q4_k(Block block, BlockParameters& out) {
  constexpr std::size_t kScales = 4;
  out.super_scale = f16_at(block, 0);
  out.super_minimum = f16_at(block, 2);
  for (std::size_t i = 0; i < 8; ++i) {
    std::uint32_t of_scale = 0, of_minimum = 0;
    if (i < 4) {
      of_scale = byte_at(block, kScales + i) & 63U;
      of_minimum = byte_at(block, kScales + 4 + i) & 63U;
    } else {
      const std::uint32_t both = byte_at(block, kScales + 4 + i);
      of_scale = (both & 15U) | byte_at(block, kScales + i - 4) >> 6U << 4U;
      of_minimum = both >> 4U | byte_at(block, kScales + i) >> 6U << 4U;
    }
    out.add_scale(static_cast<float>(of_scale));
    out.add_minimum(static_cast<float>(of_minimum));
  }
}

// values[192], scales[16] (8 bits, signed), scale.
void q6_k(Block block, BlockParameters& out) {
  out.super_scale = f16_at(block, 208);
  for (std::size_t i = 0; i < 16; ++i)
    out.add_scale(static_cast<float>(static_cast<std::int8_t>(byte_at(block, 192 + i))));
}

// scale, upper bits of scales (16 bits), lower bits of scales[4], values[128].
void iq4_xs(Block block, BlockParameters& out) {
  out.super_scale = f16_at(block, 0);
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint32_t of_scale = nibble_at(block, 4, i) | (half_at(block, 2) >> (2 * i) & 3U)
                                                                << 4U;
    out.add_scale(static_cast<float>(of_scale) - 32);
  }
}

// scale, then 8 bytes for 32 values; the last 4 bits of them are the scale.
void iq2_xxs(Block block, BlockParameters& out) {
  out.super_scale = f16_at(block, 0);
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint32_t of_scale = word_at(block, 2 + 8 * i + 4) >> 28U;
    out.add_scale((0.5F + static_cast<float>(of_scale)) * 0.25F);
  }
}

// Four bits per 16 values, from `kScales`.
template <std::size_t kScales>
void iq2_by_16(Block block, BlockParameters& out) {
  out.super_scale = f16_at(block, 0);
  for (std::size_t i = 0; i < 16; ++i)
    out.add_scale((0.5F + static_cast<float>(nibble_at(block, kScales, i))) * 0.25F);
}

// scale, values[64], then 4 bytes for 32 values; the last 4 bits of them are the scale.
void iq3_xxs(Block block, BlockParameters& out) {
  out.super_scale = f16_at(block, 0);
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint32_t of_scale = word_at(block, 2 + 64 + 4 * i) >> 28U;
    out.add_scale((0.5F + static_cast<float>(of_scale)) * 0.5F);
  }
}

// scale, values[64], upper bits[8], signs[32], scales[4] (4 bits).
void iq3_s(Block block, BlockParameters& out) {
  out.super_scale = f16_at(block, 0);
  for (std::size_t i = 0; i < 8; ++i)
    out.add_scale(static_cast<float>(1 + 2 * nibble_at(block, 106, i)));
}

// scale, values[32], 8 x 16 bits: three of them are the scale.
void iq1_s(Block block, BlockParameters& out) {
  out.super_scale = f16_at(block, 0);
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint32_t bits = half_at(block, 34 + 2 * i);
    out.add_scale(static_cast<float>(2 * (bits >> 12U & 7U) + 1));
  }
}

// values[32], upper bits[16], 4 x 16 bits: four scales of 3 bits, and 4 bits of the block's scale.
void iq1_m(Block block, BlockParameters& out) {
  constexpr std::size_t kScales = 48;
  std::uint32_t super = 0;
  for (std::size_t i = 0; i < 4; ++i) super |= (half_at(block, kScales + 2 * i) >> 12U) << (4 * i);
  out.super_scale = ggml_fp16_to_fp32(static_cast<ggml_fp16_t>(super));
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint32_t of_scale = half_at(block, kScales + 2 * (i / 4)) >> (3 * (i % 4)) & 7U;
    out.add_scale(static_cast<float>(2 * of_scale + 1));
  }
}

// An exponent of 8 bits, values[16] of half its unit.
void mxfp4(Block block, BlockParameters& out) {
  out.scales.push_back(std::ldexp(1.0F, static_cast<int>(byte_at(block, 0)) - 128));
}

// scales[4] (unsigned, 4 bits of exponent and 3 of mantissa), values[32] of half their unit.
void nvfp4(Block block, BlockParameters& out) {
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint32_t bits = byte_at(block, i) & 127U;
    const auto mantissa = static_cast<float>(bits & 7U);
    const auto exponent = static_cast<int>(bits >> 3U);
    const float scale =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(1 + mantissa / 8, exponent - 7);
    out.scales.push_back(bits == 127 ? 0 : scale / 2);
  }
}

struct Known {
  ggml_type type;
  std::size_t sub_values;
  bool has_minima, has_super_block;
  void (*append)(Block, BlockParameters&);
};
constexpr auto kKnown = std::to_array<Known>({
    {GGML_TYPE_Q4_0, 32, false, false, scale_only<>},
    {GGML_TYPE_Q4_1, 32, true, false, scale_and_minimum},
    {GGML_TYPE_Q5_0, 32, false, false, scale_only<>},
    {GGML_TYPE_Q5_1, 32, true, false, scale_and_minimum},
    {GGML_TYPE_Q8_0, 32, false, false, scale_only<>},
    {GGML_TYPE_Q2_K, 16, true, true, q2_k},
    {GGML_TYPE_Q3_K, 16, false, true, q3_k},
    {GGML_TYPE_Q4_K, 32, true, true, q4_k},
    {GGML_TYPE_Q5_K, 32, true, true, q4_k},
    {GGML_TYPE_Q6_K, 16, false, true, q6_k},
    {GGML_TYPE_IQ4_NL, 32, false, false, scale_only<>},
    {GGML_TYPE_IQ4_XS, 32, false, true, iq4_xs},
    {GGML_TYPE_IQ2_XXS, 32, false, true, iq2_xxs},
    {GGML_TYPE_IQ2_XS, 16, false, true, iq2_by_16<2 + 64>},
    {GGML_TYPE_IQ2_S, 16, false, true, iq2_by_16<2 + 64 + 8>},
    {GGML_TYPE_IQ3_XXS, 32, false, true, iq3_xxs},
    {GGML_TYPE_IQ3_S, 32, false, true, iq3_s},
    {GGML_TYPE_IQ1_S, 32, false, true, iq1_s},
    {GGML_TYPE_IQ1_M, 16, false, true, iq1_m},
    {GGML_TYPE_TQ1_0, 256, false, false, scale_only<52>},
    {GGML_TYPE_TQ2_0, 256, false, false, scale_only<64>},
    {GGML_TYPE_MXFP4, 32, false, false, mxfp4},
    {GGML_TYPE_NVFP4, 16, false, false, nvfp4},
    {GGML_TYPE_Q1_0, 128, false, false, scale_only<>},
    {GGML_TYPE_Q2_0, 64, false, false, scale_only<>},
});

}  // namespace

void BlockParameters::clear() {
  for (std::vector<float>* of : {&scales, &minima, &scale_factors, &minimum_factors}) of->clear();
  super_scale = super_minimum = 0;
}

void BlockParameters::add_scale(float factor) {
  scale_factors.push_back(factor);
  scales.push_back(super_scale * factor);
}

void BlockParameters::add_minimum(float factor) {
  minimum_factors.push_back(factor);
  minima.push_back(super_minimum * factor);
}

std::optional<SuperBlock> BlockLayout::super_block(const BlockParameters& of,
                                                   std::size_t sub_block) const {
  if (!has_super_block) return std::nullopt;
  SuperBlock out{.scale = of.super_scale, .scale_factor = of.scale_factors[sub_block]};
  if (has_minima) {
    out.minimum = of.super_minimum;
    out.minimum_factor = of.minimum_factors[sub_block];
  }
  return out;
}

const BlockLayout* block_layout(std::string_view type) {
  static const auto kLayouts = [] {
    std::array<BlockLayout, kKnown.size()> layouts;
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      const Known& known = kKnown[i];
      layouts[i] = {.values = static_cast<std::size_t>(ggml_blck_size(known.type)),
                    .sub_values = known.sub_values,
                    .bytes = ggml_type_size(known.type),
                    .has_minima = known.has_minima,
                    .has_super_block = known.has_super_block,
                    .append = known.append};
    }
    return layouts;
  }();
  const auto named = ggml_type_named(type);
  for (std::size_t i = 0; named && i < kKnown.size(); ++i)
    if (kKnown[i].type == *named) return &kLayouts[i];
  return nullptr;
}

}  // namespace tt
