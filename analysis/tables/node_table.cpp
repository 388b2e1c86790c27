#include "analysis/tables/node_table.h"

#include "analysis/common/rebuilt.h"
#include "analysis/graph/node_layers.h"

namespace tt {

std::expected<NodeTable, TraceError> node_table(const SessionReader& reader, TemplateId id,
                                                PageRange range) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  if (auto known = needs_recorded_graphs(*info, "the graph"); !known)
    return std::unexpected(known.error());
  auto graph = reader.graph(id);
  if (!graph) return std::unexpected(graph.error());
  NodeTable table{.graph = *std::move(graph), .page = {}};
  const std::vector<OpId> ops = ops_of_nodes(*table.graph);
  table.page.total = ops.size();
  for (std::uint64_t i = range.from; i < ops.size() && range.contains(i); ++i)
    table.page.rows.push_back({.node = NodeId{static_cast<std::uint32_t>(i)}, .op = ops[i]});
  return table;
}

}  // namespace tt
