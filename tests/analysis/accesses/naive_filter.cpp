#include "tests/analysis/accesses/naive_filter.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "analysis/common/op_info.h"

namespace tt::test {
namespace {

bool contains(std::string text, std::string part) {
  for (auto* s : {&text, &part})
    for (char& c : *s) c = static_cast<char>(std::tolower(c));
  return text.contains(part);
}

}  // namespace

bool op_passes(const TraceFilter& filter, const GraphTemplate& graph, std::uint32_t i,
               const KernelRules& rules) {
  const Op& op = graph.ops[i];
  if (!filter.layers.empty() && std::ranges::find(filter.layers, op.layer) == filter.layers.end())
    return false;
  if (filter.component && op_role_of(graph, op).component != *filter.component) return false;
  if (filter.kernel && kernel_of(graph, op, rules) != *filter.kernel) return false;
  return contains(op_name(graph, op), filter.op) ||
         contains(graph.tensor(graph.node(op.last()).output).name, filter.op);
}

bool access_passes(const TraceFilter& filter, const GraphTemplate& graph, const Access& access) {
  const Tensor& root = graph.tensor(graph.root(access.tensor));
  return contains(root.name, filter.tensor) && (!filter.kind || root.kind == *filter.kind) &&
         (!filter.source || graph.tensor(access.tensor).source == *filter.source);
}

}  // namespace tt::test
