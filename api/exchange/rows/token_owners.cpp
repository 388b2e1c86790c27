#include "api/exchange/rows/token_owners.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tt::exchange {
namespace {

// The tokens that the entries of a slot belong to, `count` of them: all of the step, or those that
// are computed up to the output. Empty: unknown.
std::vector<std::uint32_t> tokens_of(const GraphTemplate& graph, const Step& step,
                                     std::size_t count) {
  std::vector<std::uint32_t> tokens;
  if (count == step.n_tokens) {
    for (std::uint32_t i = 0; i < step.n_tokens; ++i) tokens.push_back(i);
    return tokens;
  }
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    if (graph.slots[i].kind != SlotKind::OutputIds || step.slots[i].ints.size() != count) continue;
    for (const std::int64_t row : step.slots[i].ints) {
      if (row < 0 || std::cmp_greater_equal(row, step.n_tokens)) return {};
      tokens.push_back(static_cast<std::uint32_t>(row));
    }
    return tokens;
  }
  return {};
}

}  // namespace

std::vector<TokenOwner> owners_of(const GraphTemplate& graph, std::span<const Access> accesses,
                                  const Step& step, const StepAccess& access) {
  constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
  const Access& rule = accesses[access.access];
  if (rule.slot == kNoSlot || step.slots.size() != graph.slots.size()) return {};
  const std::vector<std::int64_t>& values = step.slots[rule.slot.v].ints;
  std::vector<TokenOwner> owners;
  if (rule.extent == Extent::Experts) {
    const std::int64_t chosen = graph.tensor(graph.slot(rule.slot).tensor).ne[0];
    const auto ranks = static_cast<std::size_t>(std::max<std::int64_t>(1, chosen));
    const std::vector<std::uint32_t> tokens = tokens_of(graph, step, values.size() / ranks);
    const SlotValues* scores = scores_of(graph, step, rule.slot);
    for (std::size_t at = 0; at < tokens.size() * ranks; ++at) {
      const std::uint32_t token = tokens[at / ranks];
      if (values[at] != access.expert || (!owners.empty() && owners.back().token == token))
        continue;
      const bool scored = scores != nullptr && at < scores->floats.size();
      owners.push_back({.token = token,
                        .rank = static_cast<std::int32_t>(at % ranks),
                        .score = scored ? scores->floats[at] : kUnknown});
    }
  } else if (rule.extent == Extent::Rows && part_rule(graph, rule).separate &&
             !access.range.empty() && rule.stride > 0 && values.size() == step.n_tokens) {
    const std::uint64_t row = (access.range.offset - rule.range.offset) / rule.stride;
    for (std::uint32_t token = 0; token < step.n_tokens; ++token)
      if (std::cmp_equal(values[token], row))
        owners.push_back({.token = token, .rank = -1, .score = kUnknown});
  }
  std::ranges::sort(owners, {}, &TokenOwner::token);
  return owners;
}

}  // namespace tt::exchange
