#include "analysis/experts/router_choices.h"

#include <algorithm>
#include <limits>
#include <map>

#include "analysis/common/derived_graphs.h"
#include "analysis/common/walk_steps.h"

namespace tt {

namespace {

// The number of experts of each router of a graph: the number of slices of the weights that
// its choices select from, else the model's expert count.
class RouterSizes {
 public:
  RouterSizes(const DerivedGraph& derived, std::uint32_t of_model) {
    std::map<LayerId, std::uint32_t> routers;
    const GraphTemplate& graph = *derived.graph;
    for (std::uint32_t i = 0; i < graph.slots.size(); ++i) {
      if (graph.slots[i].kind != SlotKind::Experts) continue;
      const LayerId layer = graph.slots[i].layer;
      std::uint32_t& number = numbers_[{layer, routers[layer]++}];
      for (const Access& access : derived.accesses) {
        if (access.extent != Extent::Experts || access.slot.v != i) continue;
        const std::int64_t slices = graph.tensor(access.tensor).ne[2];
        constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
        number =
            std::max(number, static_cast<std::uint32_t>(std::clamp(slices, std::int64_t{0}, kMax)));
      }
      if (number == 0) number = of_model;
    }
  }
  std::uint32_t of(const RouterId& router) const { return numbers_.at(router); }

 private:
  std::map<RouterId, std::uint32_t> numbers_;
};

// Splits rows into choices: a choice begins at rank 0.
void for_each_choice(std::span<const RoutingRow> rows, const RouterSizes& numbers,
                     const std::function<void(const RouterChoice&)>& row) {
  for (std::size_t at = 0; at < rows.size();) {
    std::size_t end = at + 1;
    while (end < rows.size() && rows[end].rank != 0) ++end;
    const RouterId router{rows[at].layer, rows[at].router};
    row({.router = router,
         .experts = numbers.of(router),
         .token = rows[at].token,
         .rows = rows.subspan(at, end - at)});
    at = end;
  }
}

}  // namespace

std::expected<void, TraceError> for_each_choice(
    const SessionReader& reader, std::optional<Phase> phase, const ContinueCheck& keep_going,
    const std::function<void(const RouterChoice&)>& row) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  DerivedGraphCache graphs(reader);
  std::map<TemplateId, RouterSizes> numbers;
  return walk_steps(
      reader, kAllRows, keep_going, [&](const Step& step) -> std::expected<void, TraceError> {
        if (step.graph.v == 0 || step.slots.empty() || (phase && step.phase != *phase)) return {};
        auto known = numbers.find(step.graph);
        if (known == numbers.end()) {
          const auto derived = graphs.of(step.graph);
          if (!derived) return std::unexpected(derived.error());
          known = numbers.emplace(step.graph, RouterSizes(**derived, info->n_experts)).first;
        }
        const auto graph = reader.graph(step.graph);
        if (!graph) return std::unexpected(graph.error());
        for_each_choice(routing_rows(**graph, step), known->second, row);
        return {};
      });
}

}  // namespace tt
