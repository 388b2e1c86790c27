#include <algorithm>
#include <string_view>

#include "tracer/format/access.h"

namespace tt {
namespace {

// The op whose node made this tensor; kNone for leaves.
std::uint32_t op_that_made(const GraphTemplate& graph, TensorId tensor) {
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].output != tensor) continue;
    const auto op =
        std::ranges::partition_point(graph.ops, [n](const Op& o) { return o.last().v < n; });
    return op == graph.ops.end() ? kNone : static_cast<std::uint32_t>(op - graph.ops.begin());
  }
  return kNone;
}

Category of_weight(const Tensor& weight) {
  const std::string_view name = weight.name;
  if (weight.layer != kNoLayer) return Category::Layer;
  if (weight.component == Component::Embedding || name.starts_with("token_embd")) {
    return Category::Embedding;
  }
  if (weight.component == Component::Output || name.contains("output")) return Category::Output;
  return Category::Infrastructure;  // RoPE frequencies and other shared constants
}

// An intermediate without a layer of its own lies before the first layer, after
// the last one, or between two.
Category of_intermediate(const GraphTemplate& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  const std::string_view name = tensor.name;
  if (tensor.layer != kNoLayer) return Category::Layer;
  if (tensor.component == Component::Embedding) return Category::Embedding;
  if (tensor.component == Component::Output || name.starts_with("result_")) return Category::Output;
  const std::uint32_t op = op_that_made(graph, id);
  if (op == kNone) return Category::Infrastructure;
  if (graph.ops[op].layer != kNoLayer) return Category::Layer;
  const auto has_layer = [](const Op& o) { return o.layer != kNoLayer; };
  const auto here = graph.ops.begin() + static_cast<std::ptrdiff_t>(op);
  const bool layer_before = std::any_of(graph.ops.begin(), here, has_layer);
  const bool layer_after = std::any_of(here, graph.ops.end(), has_layer);
  if (layer_before && !layer_after) return Category::Output;
  if (layer_after && !layer_before) return Category::Embedding;
  return Category::Infrastructure;
}

}  // namespace

Category category_of(const GraphTemplate& graph, TensorId id) {
  const Tensor& root = graph.tensor(graph.root(id));
  switch (root.kind) {
    case TensorKind::Kv:
    case TensorKind::Input:
      return Category::Infrastructure;
    case TensorKind::Weight:
      return of_weight(root);
    case TensorKind::Intermediate:
      break;
  }
  return of_intermediate(graph, id);
}

}  // namespace tt
