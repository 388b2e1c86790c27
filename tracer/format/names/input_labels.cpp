// Derives the meaning of input tensors from their consumers.
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "tracer/format/names/names.h"

namespace tt {
namespace {

// Ops that only change the shape or type of an input: consumers of their output are
// consumers of the input. (A mask is cast to F16 before FLASH_ATTN_EXT.)
bool is_pass_through(std::string_view op) {
  static constexpr std::array ops = {"VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE",
                                     "CONT", "CPY",     "DUP"};
  return std::ranges::find(ops, op) != ops.end();
}

// Index of the first node after the last write to a cache. From there on, a GET_ROWS of an
// intermediate selects the rows for the output.
std::size_t first_node_after_caches(const GraphTemplate& graph) {
  std::size_t after = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const Tensor& written = graph.tensor(graph.root(node.output));
    if (node.computed && written.kind == TensorKind::Kv) after = n + 1;
  }
  return after;
}

InputLabel label_of_rows(const GraphTemplate& graph, const Node& node, bool after_caches) {
  const Tensor& table = graph.tensor(graph.root(node.src[0]));
  const std::string_view name = table.name;
  if (table.kind == TensorKind::Kv) return InputLabel::StateCopy;
  if (table.kind == TensorKind::Intermediate) {
    return after_caches ? InputLabel::OutputIds : InputLabel::Other;
  }
  if (name.contains("pos")) return InputLabel::RopePositions;
  if (component_of(name, table.kind) == Component::Embedding) return InputLabel::TokenIds;
  return InputLabel::Other;  // for example T5's buckets of relative positions
}

// Label of an input that this node consumes as source `i`.
InputLabel label_from(const GraphTemplate& graph, const Node& node, std::size_t i,
                      bool after_caches) {
  const std::string_view op = node.op;
  if (op == "GET_ROWS" && i == 1) return label_of_rows(graph, node, after_caches);
  if (op.starts_with("ROPE") && i == 1) return InputLabel::RopePositions;
  if (op == "SET_ROWS" && i == 1) {
    const bool cache = graph.tensor(graph.root(node.output)).kind == TensorKind::Kv;
    return cache ? InputLabel::CachePositions : InputLabel::Other;
  }
  if (op == "SOFT_MAX" && i == 1) return InputLabel::Mask;
  if ((op == "FLASH_ATTN_EXT" || op == "LIGHTNING_INDEXER") && i == 3) return InputLabel::Mask;
  if (op == "SSM_SCAN" && i == 6) return InputLabel::StateCopy;
  return InputLabel::None;
}

// Fallback for inputs that are consumed by arithmetic ops only: by name.
InputLabel label_by_name(const Tensor& input) {
  const std::string_view name = input.name;
  if (name.contains("mask")) return InputLabel::Mask;
  if (name.contains("s_copy")) return InputLabel::StateCopy;
  if (name.contains("embd")) return InputLabel::Embeddings;
  return InputLabel::Other;
}

}  // namespace

void label_inputs(GraphTemplate& graph) {
  // Per tensor, the input whose values it holds.
  std::vector<TensorId> carries(graph.tensors.size(), kNoTensor);
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    Tensor& tensor = graph.tensors[i];
    if (tensor.kind != TensorKind::Input) continue;
    carries[i] = graph.root(TensorId{i});
    tensor.component = Component::Input;
    tensor.input = InputLabel::None;
  }
  const std::size_t after_caches = first_node_after_caches(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (std::size_t i = 0; i < node.src.size(); ++i) {
      if (node.src[i] == kNoTensor) continue;
      const TensorId input = carries[node.src[i].v];
      if (input == kNoTensor) continue;
      if (i == 0 && is_pass_through(node.op) && carries[node.output.v] == kNoTensor &&
          graph.tensor(graph.root(node.output)).kind != TensorKind::Kv) {
        carries[node.output.v] = input;
      }
      Tensor& tensor = graph.tensors[input.v];
      if (tensor.input == InputLabel::None) {
        tensor.input = label_from(graph, node, i, n >= after_caches);
      }
    }
  }
  for (Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::Input || tensor.view_of != kNoTensor) continue;
    if (tensor.input == InputLabel::None) tensor.input = label_by_name(tensor);
  }
  for (Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::Input && tensor.view_of != kNoTensor) {
      tensor.input = graph.tensor(tensor.view_of).input;
    }
  }
}

}  // namespace tt
