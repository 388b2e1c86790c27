#include "analysis/graph/dependencies.h"

#include <algorithm>

namespace tt {

std::vector<Dependency> dependencies_of(const GraphTemplate& graph) {
  // Per tensor: the node that computed it; per root tensor: the last node that wrote into
  // its memory. kNone: none so far.
  std::vector<std::uint32_t> made_by(graph.tensors.size(), kNone), written_by = made_by;
  std::vector<Dependency> out;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const TensorId to = node.output, root = graph.root(to);
    const auto begin = static_cast<std::ptrdiff_t>(out.size());
    const auto add = [&](TensorId from) {
      const Dependency edge{from, to};
      if (from != to && std::find(out.begin() + begin, out.end(), edge) == out.end())
        out.push_back(edge);
    };
    const auto read = [&](TensorId from) {
      add(from);
      const std::uint32_t writer = written_by[graph.root(from).v], maker = made_by[from.v];
      if (writer != kNone && (maker == kNone || writer > maker)) add(graph.nodes[writer].output);
    };
    bool leads_to_root = to == root;
    for (const TensorId source : node.src) {
      if (source == kNoTensor) continue;
      read(source);
      leads_to_root |= graph.root(source) == root;
    }
    if (!leads_to_root) read(root);
    made_by[to.v] = n;
    if (node.computed) written_by[root.v] = n;
  }
  return out;
}

}  // namespace tt
