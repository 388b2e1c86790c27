#include "analysis/experts/router_choices.h"

#include <algorithm>
#include <limits>

#include "analysis/common/rebuilt.h"
#include "analysis/common/walk_steps.h"

namespace tt {

std::expected<const ChoiceReader::RouterSizes*, TraceError> ChoiceReader::sizes_of(TemplateId id) {
  if (const auto known = sizes_.find(id); known != sizes_.end()) return &known->second;
  const auto info = reader_.info();
  if (!info) return std::unexpected(info.error());
  const auto derived = graphs_.of(id);
  if (!derived) return std::unexpected(derived.error());
  const GraphTemplate& graph = *(*derived)->graph;
  RouterSizes& sizes = sizes_[id];
  std::map<LayerId, std::uint32_t> routers;
  for (std::uint32_t i = 0; i < graph.slots.size(); ++i) {
    if (graph.slots[i].kind != SlotKind::Experts) continue;
    const LayerId layer = graph.slots[i].layer;
    std::uint32_t& number = sizes[{layer, routers[layer]++}];
    for (const Access& access : (*derived)->accesses) {
      if (access.extent != Extent::Experts || access.slot.v != i) continue;
      const std::int64_t slices = graph.tensor(access.tensor).ne[2];
      constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
      number =
          std::max(number, static_cast<std::uint32_t>(std::clamp(slices, std::int64_t{0}, kMax)));
    }
    if (number == 0) number = info->n_experts;
  }
  return &sizes;
}

std::expected<void, TraceError> ChoiceReader::for_each(
    const Step& step, const std::function<void(const RouterChoice&)>& take) {
  const auto sizes = sizes_of(step.graph);
  if (!sizes) return std::unexpected(sizes.error());
  const auto graph = reader_.graph(step.graph);
  if (!graph) return std::unexpected(graph.error());
  if (step.n_tokens > 1) {
    const auto info = reader_.info();
    if (!info) return std::unexpected(info.error());
    if (auto known =
            needs_recorded_graphs(*info, "which expert was chosen for which token of a prompt");
        !known)
      return known;
  }
  const std::vector<RoutingRow> rows = routing_rows(**graph, step);
  // The ranks of a choice ascend. Some may be missing: their experts are unknown.
  const auto is_next = [](const RoutingRow& before, const RoutingRow& row) {
    return row.layer == before.layer && row.router == before.router && row.token == before.token &&
           row.rank > before.rank;
  };
  for (std::size_t at = 0; at < rows.size();) {
    std::size_t end = at + 1;
    while (end < rows.size() && is_next(rows[end - 1], rows[end])) ++end;
    const RouterId router{rows[at].layer, rows[at].router};
    take({.router = router,
          .experts = (*sizes)->at(router),
          .token = rows[at].token,
          .rows = std::span(rows).subspan(at, end - at)});
    at = end;
  }
  return {};
}

std::expected<void, TraceError> for_each_choice(
    const SessionReader& reader, std::optional<Phase> phase, const ContinueCheck& keep_going,
    const std::function<void(const RouterChoice&)>& take) {
  ChoiceReader choices(reader);
  return walk_steps(
      reader, kAllRows, keep_going, [&](const Step& step) -> std::expected<void, TraceError> {
        if (step.graph.v == 0 || step.slots.empty() || (phase && step.phase != *phase)) return {};
        return choices.for_each(step, take);
      });
}

}  // namespace tt
