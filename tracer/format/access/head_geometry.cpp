#include <algorithm>
#include <string_view>

#include "tracer/format/access/access.h"

namespace tt {
namespace {

constexpr std::uint32_t kMaxHeads = 65'536;  // the file is untrusted

// The first factor of a low-rank projection (MLA's attn_q_a, attn_kv_a_mqa) and the
// per-head norms are shared by all heads; an indexer has its own heads.
bool shared_by_heads(const Tensor& weight) {
  const std::string_view name = weight.name;
  return weight.ne[1] == 1 || name.contains("_a.") || name.contains("_a_mqa") ||
         name.contains("norm") || name.contains("indexer");
}

HeadCounts counts_of(const LayerHeads& layers, LayerId layer, HeadCounts model) {
  if (layers.empty()) return model;
  const auto found = layers.find(layer);
  return found == layers.end() ? HeadCounts{} : found->second;
}

// Whether the node computes attention scores from queries and keys: the fused op, or the
// MUL_MAT whose output libllama names "kq-N".
bool is_attention(const GraphTemplate& graph, const Node& node) {
  if (node.src.size() < 2 || node.src[0] == kNoTensor || node.src[1] == kNoTensor) return false;
  return node.op == "FLASH_ATTN_EXT" ||
         (node.op == "MUL_MAT" && graph.tensor(node.output).name.starts_with("kq-"));
}

// The fourth dimension is the stream (always one here) or the group of heads.
std::uint32_t heads_of(const Tensor& queries_or_keys) {
  const auto [head_dim, rows, heads, groups] = queries_or_keys.ne;
  if (heads <= 0 || groups <= 0 || heads > kMaxHeads || groups > kMaxHeads / heads) return 0;
  return static_cast<std::uint32_t>(heads * groups);
}

}  // namespace

LayerHeads heads_of_layers(const GraphTemplate& graph) {
  LayerHeads layers;
  for (const Op& op : graph.ops) {
    const Node& node = graph.node(op.first);
    if (op.layer == kNoLayer || !is_attention(graph, node)) continue;
    const bool fused = node.op == "FLASH_ATTN_EXT";
    // Some layers first select cells with an attention of fewer heads.
    HeadCounts& counts = layers[op.layer];
    counts.q = std::max(counts.q, heads_of(graph.tensor(node.src[fused ? 0 : 1])));
    counts.kv = std::max(counts.kv, heads_of(graph.tensor(node.src[fused ? 1 : 0])));
  }
  return layers;
}

HeadGeometry head_geometry(const Tensor& weight, const LayerHeads& layers, HeadCounts model) {
  const HeadCounts counts = counts_of(layers, weight.layer, model);
  const bool q_or_o = weight.role == Role::Q || weight.role == Role::O;
  const bool k_or_v = weight.role == Role::K || weight.role == Role::V;
  const std::int64_t heads = q_or_o ? counts.q : k_or_v ? counts.kv : 0;
  if (weight.kind != TensorKind::Weight || heads == 0 || shared_by_heads(weight)) return {};

  // One slice per head, as in MLA's attn_k_b and attn_v_b.
  if (weight.ne[2] > 1) {
    return {.count = static_cast<std::uint32_t>(weight.ne[2]), .bytes = Bytes{weight.nb[2]}};
  }
  if (weight.role != Role::O) {
    if (weight.ne[1] % heads != 0) return {};
    return {.count = static_cast<std::uint32_t>(heads),
            .bytes = Bytes{static_cast<std::uint64_t>(weight.ne[1] / heads) * weight.nb[1]}};
  }
  // A head of O is a range of columns. If a quantized block spans several heads (Q4_K with
  // heads of 64), no byte belongs to a single head.
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

std::uint32_t heads_sharing(const GraphTemplate& graph, const Access& access,
                            const LayerHeads& layers, HeadCounts model) {
  const Tensor& owner = graph.tensor(graph.root(access.tensor));
  const std::uint32_t heads = counts_of(layers, owner.layer, model).q;
  if (owner.layer.v < 0 || heads > kMaxHeads) return 0;
  if (owner.kind == TensorKind::Kv) {
    const bool indexer = std::string_view(owner.name).starts_with("cache_idx");
    return !indexer && (owner.role == Role::K || owner.role == Role::V) ? heads : 0;
  }
  const bool whole = access.extent == Extent::All && access.unit == size_of(owner);
  return whole && head_geometry(owner, layers, model).count > 0 ? heads : 0;
}

}  // namespace tt
