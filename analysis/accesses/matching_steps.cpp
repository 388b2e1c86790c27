#include "analysis/accesses/matching_steps.h"

#include <algorithm>
#include <span>

namespace tt {

AccessMatcher::AccessMatcher(const SessionIndex& index, const AccessFilter& filter)
    : filter_(filter) {
  for (const SessionView& view : index.names().views())
    names_.push_back(filter.tensor.passes(view));
  for (const std::string& kind : index.names().kinds())
    kinds_.push_back(matches_pattern(kind, filter.op_name));
  for (const SessionOp& op : index.names().ops())
    ops_.push_back(matches_pattern(op.output, filter.op_name));
}

bool AccessMatcher::passes(const Series& series, const OutlineAccess& access) const {
  if (!names_[access.name] || (filter_.write && access.write != *filter_.write)) return false;
  return !filter_.expert || (access.rule != kNone && series.outline->rules[access.rule].experts());
}

MatchingSteps::MatchingSteps(const SessionIndex& index, const AccessFilter& filter,
                             std::optional<Phase> phase)
    : index_(index), expert_(filter.expert), picked_(index.series().size()) {
  const AccessMatcher matcher(index, filter);
  for (std::size_t s = 0; s < picked_.size(); ++s) {
    const Series& series = index.series()[s];
    if (phase && series.phase != *phase) continue;
    Picked& picked = picked_[s];
    matcher.for_each(series, [&](const OutlineAccess& access) {
      if (access.rule == kNone) {
        picked.every_step = true;
      } else if (std::ranges::find(picked.rules, access.rule) == picked.rules.end()) {
        picked.rules.push_back(access.rule);
      }
    });
    any_ |= picked.any();
  }
}

bool MatchingSteps::has_matching_part(const Series& series, std::uint32_t rule,
                                      std::uint32_t place) const {
  if (series.hits_before(place)[rule] == series.hits_before(place + 1)[rule]) return false;
  if (!expert_) return true;
  if (*expert_ < 0) return false;
  const auto number = static_cast<std::uint32_t>(*expert_);
  const OutlineRule& of = series.outline->rules[rule];
  if (!of.listed()) {
    const auto set = series.set_of(of, place);
    return number / 64 < set.size() && (set[number / 64] >> (number % 64) & 1) != 0;
  }
  bool found = false;
  series.for_each_listed(place, [&](std::uint32_t r, std::span<const std::uint32_t> listed) {
    found |= r == rule && std::ranges::binary_search(listed, number);
  });
  return found;
}

bool MatchingSteps::may_match(std::uint32_t id) const {
  const IndexedStep& step = index_.steps()[id];
  if (step.series == kNone) return std::ranges::binary_search(index_.damaged(), StepId{id});
  const Picked& picked = picked_[step.series];
  return picked.every_step || std::ranges::any_of(picked.rules, [&](std::uint32_t rule) {
           return has_matching_part(index_.series()[step.series], rule, step.place);
         });
}

std::uint32_t MatchingSteps::at_or_after(std::uint32_t step) const {
  const auto end = static_cast<std::uint32_t>(index_.steps().size());
  if (!any_ && index_.damaged().empty()) return std::max(step, end);
  while (step < end && !may_match(step)) ++step;
  return step;
}

std::optional<std::uint32_t> MatchingSteps::before(std::uint32_t end) const {
  const auto known = static_cast<std::uint32_t>(index_.steps().size());
  if (end > known) return end - 1;
  if (!any_ && index_.damaged().empty()) return std::nullopt;
  while (end > 0 && !may_match(end - 1)) --end;
  return end == 0 ? std::nullopt : std::optional(end - 1);
}

}  // namespace tt
