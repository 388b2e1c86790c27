#include "analysis/common/derived_graphs.h"

#include <algorithm>
#include <tuple>

namespace tt {
namespace {

// Priority of an access as the op's main access.
std::tuple<int, std::uint64_t> priority_of(const GraphTemplate& graph, const Access& access) {
  const Tensor& view = graph.tensor(access.tensor);
  const int kind = view.kind == TensorKind::Weight && !access.write ? 3
                   : view.kind == TensorKind::Kv                    ? 2
                   : !access.write                                  ? 1
                                                                    : 0;
  return {kind, access.slot == kNoSlot ? access.unit.v : size_of(view).v};
}

}  // namespace

std::vector<std::uint32_t> main_accesses_of(const GraphTemplate& graph,
                                            std::span<const Access> accesses) {
  std::vector<std::uint32_t> main(graph.ops.size(), kNone);
  for (std::uint32_t i = 0; i < accesses.size(); ++i) {
    std::uint32_t& of_op = main[accesses[i].op.v];
    if (of_op == kNone || priority_of(graph, accesses[of_op]) < priority_of(graph, accesses[i]))
      of_op = i;
  }
  return main;
}

std::shared_ptr<const DerivedGraph> derive_graph(std::shared_ptr<const GraphTemplate> graph) {
  DerivedGraph derived{.graph = nullptr,
                       .accesses = accesses_of(*graph),
                       .categories = categories_of(*graph),
                       .heads = heads_of_layers(*graph),
                       .main_accesses = {}};
  derived.main_accesses = main_accesses_of(*graph, derived.accesses);
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
