#include "analysis/common/op_info.h"

#include <algorithm>

namespace tt {

namespace {

bool does_work(const Node& node) {
  return node.computed && node.op != "NONE" && node.op != "RESHAPE" && node.op != "VIEW" &&
         node.op != "PERMUTE" && node.op != "TRANSPOSE";
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
  if (output.component == Component::Other && output.role == Role::None) {
    for (const TensorId source : op_sources(graph, op)) {
      const Tensor& tensor = graph.tensor(source);
      if (tensor.kind == TensorKind::Weight) return {tensor.component, tensor.role};
    }
  }
  return {output.component, output.role};
}

bool may_read_file(const GraphTemplate& graph, const Access& access) {
  return !access.write && !graph.tensor(graph.root(access.tensor)).file.empty();
}

}  // namespace tt
