#include "analysis/experts/turnover.h"

#include <algorithm>
#include <utility>

#include "analysis/index/walk_outlines.h"
#include "tracer/format/file/blob_codec.h"

namespace tt {

std::expected<const TurnoverTally::OutlinedRouters*, TraceError> TurnoverTally::routers_of(
    TemplateId id, const StepDecoder& decoder) {
  const auto [at, fresh] = templates_.try_emplace(decoder.outline().get());
  OutlinedRouters& out = at->second;
  if (!fresh) return &out;
  out.outline = decoder.outline();
  const auto sizes = choices_.sizes_of(id);
  if (!sizes) return std::unexpected(sizes.error());
  const auto graph = reader_.graph(id);
  if (!graph) return std::unexpected(graph.error());
  std::map<LayerId, std::uint32_t> routers;
  for (std::uint32_t i = 0; i < (*graph)->slots.size(); ++i) {
    const Slot& slot = (*graph)->slots[i];
    if (slot.kind != SlotKind::Experts) continue;
    OutlinedRouter router{.id = {slot.layer, routers[slot.layer]++}};
    router.per_token =
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, (*graph)->tensor(slot.tensor).ne[0]));
    for (const OutlineRule& rule : out.outline->rules) {
      if (rule.experts() && rule.words > 0 && rule.rule.slot.v == i &&
          std::cmp_equal(rule.rule.limit, (*sizes)->at(router.id)))
        router.rule = &rule;
    }
    out.all = out.all && router.rule != nullptr;
    out.routers.push_back(router);
  }
  return &out;
}

std::expected<void, TraceError> TurnoverTally::add(const SessionReader::StepRow& row,
                                                   StepDecoder& decoder) {
  if (row.head.phase != Phase::Generate) return {};
  const auto routers = routers_of(row.head.graph, decoder);
  if (!routers) return std::unexpected(routers.error());
  if ((*routers)->routers.empty()) return {};
  // A set does not say which of several tokens an expert was chosen for.
  const bool is_set = row.head.n_tokens == 1 && (*routers)->all &&
                      std::ranges::all_of((*routers)->routers, [&](const OutlinedRouter& router) {
                        const std::size_t listed = decoder.parts_of(*router.rule).listed;
                        return listed == 0 || listed == router.per_token;
                      });
  if (is_set) {
    for (const OutlinedRouter& router : (*routers)->routers) {
      const StepDecoder::Parts parts = decoder.parts_of(*router.rule);
      if (parts.listed == 0) continue;
      experts_.clear();
      for_each_part(parts, [&](std::uint64_t expert) {
        experts_.push_back(static_cast<std::uint32_t>(expert));
      });
      count(router.id, row.head.first_token);
    }
    return {};
  }
  Step step = row.head;
  if (!unpack_step(row.packed, step)) return std::unexpected(damaged_step(step.id));
  return choices_.for_each(step, [&](const RouterChoice& choice) {
    experts_.clear();
    for (const RoutingRow& chosen : choice.rows)
      if (chosen.expert < choice.experts) experts_.push_back(chosen.expert);
    std::ranges::sort(experts_);
    const auto repeated = std::ranges::unique(experts_);
    experts_.erase(repeated.begin(), repeated.end());
    count(choice.router, choice.token);
  });
}

void TurnoverTally::count(RouterId router, std::uint32_t token) {
  Last& last = last_[router];
  if (token != kNone && last.token != kNone && token == last.token + 1) {
    sum_.followed += experts_.size();
    sum_.turned += static_cast<std::uint64_t>(std::ranges::count_if(
        experts_, [&](std::uint32_t e) { return !std::ranges::binary_search(last.experts, e); }));
  }
  last.token = token;
  last.experts.swap(experts_);
}

}  // namespace tt
