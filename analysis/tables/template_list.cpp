#include "analysis/tables/template_list.h"

#include <set>
#include <unordered_map>

#include "analysis/common/walk_steps.h"

namespace tt {

std::expected<std::vector<TemplateRow>, TraceError> template_list(const SessionReader& reader,
                                                                  const ContinueCheck& keep_going) {
  const auto steps = reader.step_count();
  if (!steps) return std::unexpected(steps.error());
  const auto ids = reader.template_ids();
  if (!ids) return std::unexpected(ids.error());
  std::unordered_map<TemplateId, std::uint32_t> evaluated;
  const auto read = walk_steps(reader, {.from = 0, .limit = *steps}, keep_going,
                               [&](const Step& step) { ++evaluated[step.graph]; });
  if (!read) return std::unexpected(read.error());

  std::vector<TemplateRow> rows;
  for (const TemplateId id : *ids) {
    if (!keep_going()) return std::unexpected(cancelled_error());
    const auto graph = reader.graph(id);
    if (!graph) return std::unexpected(graph.error());
    const GraphTemplate& g = **graph;
    std::set<LayerId> layers;
    for (const Op& op : g.ops) layers.insert(op.layer);
    layers.erase(kNoLayer);
    rows.push_back({.id = id,
                    .fingerprint = g.fingerprint,
                    .nodes = static_cast<std::uint32_t>(g.nodes.size()),
                    .ops = static_cast<std::uint32_t>(g.ops.size()),
                    .tensors = static_cast<std::uint32_t>(g.tensors.size()),
                    .steps = evaluated[id],
                    .layers = static_cast<std::uint32_t>(layers.size())});
  }
  return rows;
}

}  // namespace tt
