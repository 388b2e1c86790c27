#include <algorithm>
#include <optional>
#include <string_view>

#include "tracer/format/access/access.h"

namespace tt {
namespace {

Category of_weight(const Tensor& weight) {
  const std::string_view name = weight.name;
  if (weight.layer != kNoLayer) return Category::Layer;
  if (weight.component == Component::Embedding || name.starts_with("token_embd")) {
    return Category::Embedding;
  }
  if (weight.component == Component::Output || name.contains("output")) return Category::Output;
  return Category::Infrastructure;  // RoPE frequencies and other shared constants
}

// Category of a leaf or a view of one; nullopt for computed tensors.
std::optional<Category> of_leaf(const Tensor& root) {
  switch (root.kind) {
    case TensorKind::Kv:
    case TensorKind::Input:
      return Category::Infrastructure;
    case TensorKind::Weight:
      return of_weight(root);
    case TensorKind::Intermediate:
      break;
  }
  return std::nullopt;
}

std::optional<Category> by_name(const Tensor& tensor) {
  if (tensor.layer != kNoLayer) return Category::Layer;
  if (tensor.component == Component::Embedding) return Category::Embedding;
  if (tensor.component == Component::Output || tensor.name.starts_with("result_")) {
    return Category::Output;
  }
  return std::nullopt;
}

// Category of a node without a layer: by its position relative to the nodes with one.
Category by_position(std::uint32_t node, std::uint32_t first, std::uint32_t last) {
  if (first == kNone) return Category::Infrastructure;  // a graph without layers
  if (node < first) return Category::Embedding;
  return node > last ? Category::Output : Category::Layer;
}

}  // namespace

std::vector<Category> categories_of(const GraphTemplate& graph) {
  std::vector<LayerId> layers(graph.nodes.size(), kNoLayer);
  std::uint32_t first = kNone, last = 0;  // nodes with a layer
  for (const Op& op : graph.ops) {
    if (op.layer == kNoLayer) continue;
    std::fill_n(layers.begin() + op.first.v, op.nodes, op.layer);
    first = std::min(first, op.first.v);
    last = std::max(last, op.last().v);
  }

  std::vector<Category> out(graph.tensors.size(), Category::Infrastructure);
  // Inputs, constants shared by all layers, and tensors computed only from these.
  std::vector<bool> shared(graph.tensors.size());
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    const TensorId root = graph.root(TensorId{i});
    const Tensor& tensor = graph.tensor(root);
    out[i] = of_leaf(tensor).value_or(by_name(graph.tensors[i]).value_or(Category::Infrastructure));
    shared[i] = out[i] == Category::Infrastructure && tensor.kind != TensorKind::Intermediate &&
                tensor.input != InputLabel::Embeddings;
  }
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const TensorId id = node.output;
    if (of_leaf(graph.tensor(graph.root(id))) || by_name(graph.tensor(id))) continue;
    const bool from_shared =
        layers[n] == kNoLayer && std::ranges::all_of(node.src, [&](TensorId source) {
          return source == kNoTensor || shared[source.v];
        });
    if (from_shared) {
      shared[id.v] = true;
    } else if (layers[n] != kNoLayer) {
      out[id.v] = Category::Layer;
    } else if (const TensorId root = graph.root(id); root != id) {
      out[id.v] = out[root.v];  // a view: same as its root
    } else {
      out[id.v] = by_position(n, first, last);
    }
  }
  return out;
}

}  // namespace tt
