#include "analysis/common/derived_graphs.h"

#include <algorithm>

namespace tt {

std::shared_ptr<const DerivedGraph> derive_graph(std::shared_ptr<const GraphTemplate> graph) {
  DerivedGraph derived{.graph = nullptr,
                       .accesses = accesses_of(*graph),
                       .categories = categories_of(*graph),
                       .heads = heads_of_layers(*graph)};
  derived.graph = std::move(graph);
  return std::make_shared<const DerivedGraph>(std::move(derived));
}

std::expected<std::shared_ptr<const DerivedGraph>, TraceError> DerivedGraphCache::of(
    TemplateId id) {
  if (id.v == 0) return nullptr;
  const auto found = std::ranges::find(kept_, id, [](const auto& entry) { return entry.first; });
  if (found != kept_.end()) {
    std::rotate(found, found + 1, kept_.end());
    return kept_.back().second;
  }
  auto graph = reader_.graph(id);
  if (!graph) return std::unexpected(graph.error());
  if (kept_.size() == kCapacity) kept_.erase(kept_.begin());
  kept_.emplace_back(id, derive_graph(*std::move(graph)));
  return kept_.back().second;
}

}  // namespace tt
