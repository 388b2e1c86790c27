#include "analysis/common/op_info.h"

#include <algorithm>
#include <string_view>

#include "tracer/format/names/names.h"

namespace tt {

namespace {

bool does_work(const Node& node) {
  return node.computed && node.op != "NONE" && node.op != "RESHAPE" && node.op != "VIEW" &&
         node.op != "PERMUTE" && node.op != "TRANSPOSE";
}

OpRole role_of(const Tensor& tensor) { return {tensor.component, tensor.role}; }

// The first weight that the op reads and whose name determines a component; null: none.
const Tensor* weight_of(const GraphTemplate& graph, const Op& op) {
  for (const TensorId source : op_sources(graph, op)) {
    const Tensor& tensor = graph.tensor(source);
    if (tensor.kind == TensorKind::Weight && tensor.component != Component::Other) return &tensor;
  }
  return nullptr;
}

// The component of an op that has no name: llama.cpp does not name the outputs of the central
// ops of attention and of recurrent layers.
Component by_type(std::string_view name) {
  if (name == "FLASH_ATTN_EXT") return Component::Attention;
  const bool recurrent = name.starts_with("SSM_") || name.starts_with("RWKV_") ||
                         name == "GATED_LINEAR_ATTN" || name == "GATED_DELTA_NET";
  return recurrent ? Component::Ssm : Component::Other;
}

// Whether the name of the output says more about the op than the weight.
bool output_is_more_specific(const Tensor& output, const Tensor& weight) {
  switch (output.component) {
    case Component::Other:
      return false;
    case Component::KvCache:
      return true;
    case Component::Output:  // an embedding that is also the head
      return weight.component == Component::Embedding || output.component == weight.component;
    case Component::Ssm:  // recurrent layers name their projections as attention does
      return weight.component == Component::Attention || output.component == weight.component;
    case Component::Attention:  // norms of Q, K and their factors, but not those of the layer
      if (weight.component == Component::Norm)
        return !name_without_layer(weight.name).starts_with("attn_norm");
      return output.component == weight.component;
    default:
      return output.component == weight.component && output.role != Role::Residual;
  }
}

}  // namespace

std::string op_name(const GraphTemplate& graph, const Op& op) {
  std::string name;
  for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
    const Node& node = graph.node(NodeId{n});
    if (op.nodes > 1 && !does_work(node)) continue;
    if (!name.empty()) name += '+';
    name += node.op;
  }
  return name;
}

std::vector<TensorId> op_sources(const GraphTemplate& graph, const Op& op) {
  std::vector<TensorId> sources, inside;
  for (std::uint32_t n = op.first.v; n <= op.last().v; ++n) {
    const Node& node = graph.node(NodeId{n});
    for (const TensorId source : node.src) {
      if (source != kNoTensor && std::ranges::find(inside, source) == inside.end())
        sources.push_back(source);
    }
    inside.push_back(node.output);
  }
  return sources;
}

OpRole op_role_of(const GraphTemplate& graph, const Op& op) {
  const Tensor& output = graph.tensor(graph.node(op.last()).output);
  const Tensor* weight = weight_of(graph, op);
  if (weight != nullptr && !output_is_more_specific(output, *weight)) return role_of(*weight);
  if (output.component == Component::Other && output.role == Role::None)
    return {by_type(op_name(graph, op)), Role::None};
  return role_of(output);
}

bool may_read_file(const GraphTemplate& graph, const Access& access) {
  return !access.write && !graph.tensor(graph.root(access.tensor)).file.empty();
}

}  // namespace tt
