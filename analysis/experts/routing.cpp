#include "analysis/experts/routing.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "tracer/format/access/access.h"

namespace tt {

std::vector<std::uint32_t> slot_tokens(const GraphTemplate& graph, const Step& step,
                                       std::size_t count) {
  std::vector<std::uint32_t> tokens(count, kNone);
  if (count == step.n_tokens) {
    std::iota(tokens.begin(), tokens.end(), 0U);
    return tokens;
  }
  for (std::size_t i = 0; i < step.slots.size(); ++i) {
    const std::vector<std::int64_t>& rows = step.slots[i].ints;
    if (graph.slots[i].kind != SlotKind::OutputIds || rows.size() != count) continue;
    for (std::size_t at = 0; at < count; ++at)
      if (rows[at] >= 0 && std::cmp_less(rows[at], step.n_tokens))
        tokens[at] = static_cast<std::uint32_t>(rows[at]);
    break;
  }
  return tokens;
}

std::vector<RoutingRow> routing_rows(const GraphTemplate& graph, const Step& step) {
  std::vector<RoutingRow> rows;
  if (step.slots.size() != graph.slots.size()) return rows;
  std::map<LayerId, std::uint32_t> routers;
  for (std::uint32_t i = 0; i < graph.slots.size(); ++i) {
    const Slot& slot = graph.slots[i];
    if (slot.kind != SlotKind::Experts) continue;
    const std::uint32_t router = routers[slot.layer]++;
    const std::vector<std::int64_t>& experts = step.slots[i].ints;
    const SlotValues* scores = scores_of(graph, step, SlotId{i});
    const auto ranks =
        static_cast<std::size_t>(std::max<std::int64_t>(1, graph.tensor(slot.tensor).ne[0]));
    // A damaged list can end within the choices of a token.
    const auto tokens = slot_tokens(graph, step, experts.size() / ranks);
    const auto token_of = [&](std::size_t entry) {
      return entry < tokens.size() && tokens[entry] != kNone ? step.first_token + tokens[entry]
                                                             : kNone;
    };
    for (std::size_t at = 0; at < experts.size(); ++at) {
      // A list that an import rebuilt from rows has entries without an expert (-1).
      if (experts[at] < 0) continue;
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
