#include "analysis/derived_graphs.h"

namespace tt {

std::expected<std::shared_ptr<const DerivedGraph>, TraceError> DerivedGraphs::of(TemplateId id) {
  if (id.v == 0) return nullptr;
  if (const auto found = known_.find(id); found != known_.end()) return found->second;
  auto graph = reader_.graph(id);
  if (!graph) return std::unexpected(graph.error());
  auto accesses = accesses_of(**graph);
  return known_[id] = std::make_shared<const DerivedGraph>(std::move(*graph), std::move(accesses));
}

}  // namespace tt
