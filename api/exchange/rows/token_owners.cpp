#include "api/exchange/rows/token_owners.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "analysis/experts/routing.h"

namespace tt::exchange {

namespace {

constexpr float kUnknownScore = std::numeric_limits<float>::quiet_NaN();

}  // namespace

std::vector<TokenOwner> TokenOwners::of_experts(SlotId slot) const {
  const std::vector<std::int64_t>& experts = step_.slots[slot.v].ints;
  const auto ranks = static_cast<std::size_t>(
      std::max<std::int64_t>(1, graph_.tensor(graph_.slot(slot).tensor).ne[0]));
  const std::vector<std::uint32_t> tokens = slot_tokens(graph_, step_, experts.size() / ranks);
  const SlotValues* scores = scores_of(graph_, step_, slot);
  std::vector<TokenOwner> owners;
  for (std::size_t at = 0; at < tokens.size() * ranks; ++at) {
    const bool scored = scores != nullptr && at < scores->floats.size();
    owners.push_back({.part = experts[at],
                      .token = tokens[at / ranks],
                      .rank = static_cast<std::int32_t>(at % ranks),
                      .score = scored ? scores->floats[at] : kUnknownScore});
  }
  return owners;
}

std::vector<TokenOwner> TokenOwners::of_rows(SlotId slot) const {
  const std::vector<std::int64_t>& rows = step_.slots[slot.v].ints;
  if (rows.size() != step_.n_tokens) return {};
  std::vector<TokenOwner> owners;
  for (std::uint32_t token = 0; token < step_.n_tokens; ++token)
    owners.push_back({.part = rows[token], .token = token, .rank = -1, .score = kUnknownScore});
  return owners;
}

std::span<const TokenOwner> TokenOwners::of(const StepAccess& access) {
  const Access& rule = accesses_[access.access];
  if (rule.slot == kNoSlot || step_.slots.size() != graph_.slots.size()) return {};
  std::int64_t part = access.expert;
  if (rule.extent == Extent::Rows) {
    if (!part_rule(graph_, rule).separate || access.range.empty() || rule.stride == 0) return {};
    part = static_cast<std::int64_t>((access.range.offset - rule.range.offset) / rule.stride);
  } else if (rule.extent != Extent::Experts) {
    return {};
  }
  const auto [slot, is_new] = by_slot_.try_emplace({rule.slot.v, rule.extent});
  std::vector<TokenOwner>& all = slot->second;
  if (is_new) {
    all = rule.extent == Extent::Experts ? of_experts(rule.slot) : of_rows(rule.slot);
    const auto key = [](const TokenOwner& owner) { return std::tuple(owner.part, owner.token); };
    // A token can choose an expert twice: its first choice counts.
    std::ranges::stable_sort(all, {}, key);
    const auto repeated = std::ranges::unique(all, {}, key);
    all.erase(repeated.begin(), repeated.end());
  }
  const auto owners = std::ranges::equal_range(all, part, {}, &TokenOwner::part);
  // kNone is the greatest number. With an unknown owner, the others are not all of them.
  if (owners.empty() || owners.back().token == kNone) return {};
  return {owners.begin(), owners.end()};
}

}  // namespace tt::exchange
