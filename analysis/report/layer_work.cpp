#include "analysis/report/layer_work.h"

#include <algorithm>
#include <array>
#include <format>
#include <string_view>

#include "tracer/format/names/adapter.h"

namespace tt {

namespace {

// Architectures whose layers are all alike: attention with a KV cache and a feed-forward part, or
// a selective scan (mamba).
enum class Layers : std::uint8_t { Gated, Plain, Mamba };
struct Architecture {
  std::string_view name;
  Layers layers;  // Gated: the feed-forward part has three matrices; Plain: two
  // Experts have expert_feed_forward_length rows; else feed_forward_length, whatever the file says.
  bool own_expert_length = false;
};
constexpr std::array kArchitectures = {
    Architecture{"llama", Layers::Gated},         Architecture{"qwen2", Layers::Gated},
    Architecture{"qwen3", Layers::Gated},         Architecture{"qwen3moe", Layers::Gated, true},
    Architecture{"gemma", Layers::Gated},         Architecture{"gemma2", Layers::Gated},
    Architecture{"gemma3", Layers::Gated},        Architecture{"phi3", Layers::Gated},
    Architecture{"olmo2", Layers::Gated},         Architecture{"olmoe", Layers::Gated},
    Architecture{"mistral3", Layers::Gated},      Architecture{"internlm2", Layers::Gated},
    Architecture{"command-r", Layers::Gated},     Architecture{"exaone", Layers::Gated},
    Architecture{"gpt-oss", Layers::Gated, true}, Architecture{"gpt2", Layers::Plain},
    Architecture{"starcoder2", Layers::Plain},    Architecture{"gptneox", Layers::Plain},
    Architecture{"nemotron", Layers::Plain},      Architecture{"mamba", Layers::Mamba}};

std::uint64_t elements(const Tensor& tensor) {
  std::uint64_t product = 1;
  for (const std::int64_t n : tensor.ne) product *= static_cast<std::uint64_t>(n);
  return product;
}

}  // namespace

std::string to_text(const LayerWork& work) {
  std::string text = std::format("{} elements of matrices", work.matrix_elements);
  if (work.attentions > 0)
    text += std::format(", {} elements written to the KV cache, {} attention", work.cached_elements,
                        work.attentions);
  if (work.scans > 0) text += std::format(", {} scan", work.scans);
  return text;
}

std::optional<LayerWork> expected_layer_work(const SessionInfo& info) {
  const std::string_view name = info.fact("model.architecture");
  const auto architecture = std::ranges::find(kArchitectures, name, &Architecture::name);
  if (architecture == kArchitectures.end()) return std::nullopt;
  const auto number = [&](std::string_view key) {
    return info.fact_number(std::format("model.{}.{}", name, key));
  };
  const auto embd = number("embedding_length");
  if (!embd) return std::nullopt;
  LayerWork work;
  if (architecture->layers == Layers::Mamba) {
    const auto inner = number("ssm.inner_size"), state = number("ssm.state_size"),
               rank = number("ssm.time_step_rank");
    if (!inner || !state || !rank) return std::nullopt;
    work.matrix_elements = 2 * *inner * *embd                  // into the layer, and its gate
                           + *inner * (*rank + 2 * *state)     // time step, B and C
                           + *rank * *inner + *inner * *embd;  // time step, out of the layer
    work.scans = 1;
    return work;
  }
  // An array instead of a number: the layers differ.
  const auto heads = number("attention.head_count");
  const bool has_kv = !info.fact(std::format("model.{}.attention.head_count_kv", name)).empty();
  const auto heads_kv = has_kv ? number("attention.head_count_kv") : heads;
  if (!heads || !heads_kv || *heads == 0) return std::nullopt;
  const std::uint64_t key = number("attention.key_length").value_or(*embd / *heads);
  const std::uint64_t value = number("attention.value_length").value_or(*embd / *heads);
  work.cached_elements = *heads_kv * (key + value);
  work.attentions = 1;
  work.matrix_elements = *embd * (*heads * key + work.cached_elements) + *heads * value * *embd;
  const auto ff = number("feed_forward_length");
  const std::uint64_t matrices = architecture->layers == Layers::Gated ? 3 : 2;
  if (const std::uint64_t experts = number("expert_count").value_or(0); experts > 0) {
    const auto ff_expert =
        architecture->own_expert_length ? number("expert_feed_forward_length") : ff;
    if (!ff_expert || number("expert_shared_count").value_or(0) > 0 ||
        number("leading_dense_block_count").value_or(0) > 0)
      return std::nullopt;
    work.matrix_elements += experts * *embd * (matrices * *ff_expert + 1);  // 1: the router
  } else {
    if (!ff) return std::nullopt;
    work.matrix_elements += matrices * *embd * *ff;
  }
  return work;
}

std::vector<GraphWork> layer_work_of(const GraphTemplate& graph, std::uint32_t layers) {
  std::vector<GraphWork> all(layers);
  std::vector<std::uint32_t> cache_reads(layers, 0);
  for (const Op& op : graph.ops) {
    for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
      const Node& node = graph.nodes[n];
      const auto source = [&](std::size_t i) -> const Tensor* {
        if (i >= node.src.size() || node.src[i] == kNoTensor) return nullptr;
        return &graph.tensor(graph.root(node.src[i]));
      };
      const auto of_layer = [&](LayerId layer) -> GraphWork* {
        return layer.v < 0 || static_cast<std::uint32_t>(layer.v) >= layers
                   ? nullptr
                   : &all[static_cast<std::size_t>(layer.v)];
      };
      const Tensor& output = graph.tensor(node.output);
      const bool routed = node.op == "MUL_MAT_ID";
      if (node.op == "MUL_MAT" || routed) {
        const Tensor* matrix = source(0);
        if (matrix != nullptr && matrix->kind == TensorKind::Kv) {
          // Without flash attention the keys and the values are two of these.
          if (of_layer(op.layer) != nullptr) ++cache_reads[static_cast<std::size_t>(op.layer.v)];
        }
        if (matrix == nullptr || matrix->kind != TensorKind::Weight ||
            is_adapter_weight(matrix->name))
          continue;
        GraphWork* to = of_layer(matrix->layer);
        if (to == nullptr) continue;
        // A routed matrix has a column for each chosen expert of a token.
        std::uint64_t tokens = routed ? 1 : static_cast<std::uint64_t>(output.ne[1]);
        tokens *= static_cast<std::uint64_t>(output.ne[2]);
        tokens *= static_cast<std::uint64_t>(output.ne[3]);
        const bool first = to->work.matrix_elements == 0;
        to->work.matrix_elements += elements(*matrix);
        to->fewest_tokens = first ? tokens : std::min(to->fewest_tokens, tokens);
        to->most_tokens = std::max(to->most_tokens, tokens);
      } else if (node.op == "FLASH_ATTN_EXT") {
        const Tensor* keys = source(1);
        if (keys != nullptr && keys->kind == TensorKind::Kv && of_layer(op.layer) != nullptr)
          cache_reads[static_cast<std::size_t>(op.layer.v)] += 2;
      } else if (node.op == "SET_ROWS" || node.op == "CPY") {  // CPY: llama.cpp before July 2025
        const Tensor& cache = graph.tensor(graph.root(node.output));
        GraphWork* to = of_layer(cache.layer != kNoLayer ? cache.layer : op.layer);
        const bool is_attention = node.op == "SET_ROWS" || cache.name.starts_with("cache_k_") ||
                                  cache.name.starts_with("cache_v_");  // not a recurrent state
        if (cache.kind == TensorKind::Kv && is_attention && to != nullptr && !node.src.empty() &&
            node.src[0] != kNoTensor)
          to->work.cached_elements += elements(graph.tensor(node.src[0]));
      } else if (node.op == "SSM_SCAN") {
        if (GraphWork* to = of_layer(op.layer)) ++to->work.scans;
      }
    }
  }
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    GraphWork& of = all[layer];
    of.work.attentions = cache_reads[layer] / 2;
    if (of.most_tokens > 0) of.work.cached_elements /= of.most_tokens;
  }
  return all;
}

}  // namespace tt
