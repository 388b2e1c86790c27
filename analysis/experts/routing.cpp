#include "analysis/experts/routing.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "tracer/format/access/access.h"

namespace tt {

namespace {

// The rows of the batch that are computed up to the output; null if all rows are.
const std::vector<std::int64_t>* output_rows(const GraphTemplate& graph, const Step& step) {
  for (std::size_t i = 0; i < step.slots.size(); ++i)
    if (graph.slots[i].kind == SlotKind::OutputIds) return &step.slots[i].ints;
  return nullptr;
}

}  // namespace

std::vector<RoutingRow> routing_rows(const GraphTemplate& graph, const Step& step) {
  std::vector<RoutingRow> rows;
  if (step.slots.size() != graph.slots.size()) return rows;
  const std::vector<std::int64_t>* outputs = output_rows(graph, step);
  std::map<LayerId, std::uint32_t> routers;
  for (std::uint32_t i = 0; i < graph.slots.size(); ++i) {
    const Slot& slot = graph.slots[i];
    if (slot.kind != SlotKind::Experts) continue;
    const std::uint32_t router = routers[slot.layer]++;
    const std::vector<std::int64_t>& experts = step.slots[i].ints;
    const SlotValues* scores = scores_of(graph, step, SlotId{i});
    const auto ranks =
        static_cast<std::size_t>(std::max<std::int64_t>(1, graph.tensor(slot.tensor).ne[0]));
    const std::size_t tokens = experts.size() / ranks;
    const auto token_of = [&](std::size_t at) -> std::uint32_t {
      if (tokens == step.n_tokens) return step.first_token + static_cast<std::uint32_t>(at);
      if (outputs == nullptr || outputs->size() != tokens) return kNone;
      const std::int64_t row = (*outputs)[at];
      return row < 0 || std::cmp_greater_equal(row, step.n_tokens)
                 ? kNone
                 : step.first_token + static_cast<std::uint32_t>(row);
    };
    for (std::size_t at = 0; at < experts.size(); ++at) {
      rows.push_back({.layer = slot.layer,
                      .token = token_of(at / ranks),
                      .expert = static_cast<std::uint32_t>(experts[at]),
                      .rank = static_cast<std::uint32_t>(at % ranks),
                      .score = scores != nullptr && at < scores->floats.size()
                                   ? scores->floats[at]
                                   : std::numeric_limits<float>::quiet_NaN(),
                      .router = router});
    }
  }
  return rows;
}

}  // namespace tt
