#include <string_view>

#include "tracer/format/access.h"

namespace tt {
namespace {

// The first factor of a low-rank projection (MLA's attn_q_a, attn_kv_a_mqa) and
// the per-head norms serve all heads alike.
bool shared_by_heads(const Tensor& weight) {
  const std::string_view name = weight.name;
  return weight.ne[1] == 1 || name.contains("_a.") || name.contains("_a_mqa") ||
         name.contains("norm");
}

}  // namespace

HeadGeometry head_geometry(const Tensor& weight, std::uint32_t n_heads, std::uint32_t n_heads_kv) {
  const bool q_or_o = weight.role == Role::Q || weight.role == Role::O;
  const bool k_or_v = weight.role == Role::K || weight.role == Role::V;
  const std::int64_t heads = q_or_o ? n_heads : k_or_v ? n_heads_kv : 0;
  if (weight.kind != TensorKind::Weight || heads == 0 || shared_by_heads(weight)) return {};

  // A slice per head, as MLA's attn_k_b and attn_v_b have.
  if (weight.ne[2] > 1) {
    return {.count = static_cast<std::uint32_t>(weight.ne[2]), .bytes = Bytes{weight.nb[2]}};
  }
  if (weight.role != Role::O) {
    if (weight.ne[1] % heads != 0) return {};
    return {.count = static_cast<std::uint32_t>(heads),
            .bytes = Bytes{static_cast<std::uint64_t>(weight.ne[1] / heads) * weight.nb[1]}};
  }
  // A head of O is a range of columns. Where a quantized block spans several
  // heads (Q4_K, heads of 64) no byte belongs to one head alone.
  const std::int64_t columns = weight.ne[0] / heads;
  if (weight.block_elements == 0 || weight.ne[0] % heads != 0 ||
      columns % weight.block_elements != 0)
    return {};
  return {.count = static_cast<std::uint32_t>(heads),
          .bytes = Bytes{static_cast<std::uint64_t>(columns / weight.block_elements) *
                         weight.block_bytes},
          .by_columns = true,
          .row_stride = weight.nb[1]};
}

}  // namespace tt
