#include "analysis/accesses/key_bounds.h"

#include <algorithm>
#include <compare>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/accesses/matching_steps.h"

namespace tt {

KeyBounds::KeyBounds(const SessionIndex& index, const AccessFilter& filter, Order<AccessSort> order,
                     const std::optional<AccessKey>& after)
    : index_(index),
      expert_(filter.expert),
      order_(order),
      after_(after),
      series_(index.series().size()) {
  const AccessMatcher matcher(index, filter);
  for (std::size_t s = 0; s < series_.size(); ++s) {
    SeriesKeys& of = series_[s];
    const Series& series = index.series()[s];
    matcher.for_each(series, [&](const OutlineAccess& access) { add(series, access, of); });
    // Removes the keys before that of `after`.
    std::erase_if(of.keys, [&](const PossibleKey& each) {
      return after_ && std::is_lt(compare_values(each.key, *after_, order_));
    });
    const auto in_order = [&](const PossibleKey& a, const PossibleKey& b) {
      const auto values = compare_values(a.key, b.key, order_);
      if (std::is_neq(values)) return std::is_lt(values);
      return std::tie(a.rule, a.number) < std::tie(b.rule, b.number);
    };
    std::ranges::sort(of.keys, in_order);
    const auto repeated = std::ranges::unique(
        of.keys, [&](const PossibleKey& a, const PossibleKey& b) { return !in_order(a, b); });
    of.keys.erase(repeated.begin(), repeated.end());
  }
}

AccessKey KeyBounds::in_file(const FileRange& range) const {
  AccessKey key;
  key.missing = range.empty();
  if (!key.missing) {
    key.a = range.file;
    key.b = range.offset;
  }
  return key;
}

// Must produce the same keys as MatchingAccesses::key_of().
void KeyBounds::add(const Series& series, const OutlineAccess& access, SeriesKeys& of) const {
  const OutlineRule* rule = access.rule == kNone ? nullptr : &series.outline->rules[access.rule];
  PossibleKey possible{.key = {}, .rule = access.rule};
  if (order_.by == AccessSort::ByTensor) {
    possible.key.name = index_.names().views()[access.name].name;
  } else if (order_.by == AccessSort::ByBytes) {
    if (rule != nullptr && !rule->rule.separate) {
      const auto same = [&](const Varying& v) {
        return v.rule == access.rule && v.access->unit == access.unit;
      };
      if (std::ranges::none_of(of.varying, same)) of.varying.push_back({access.rule, &access});
      return;
    }
    possible.key.a = access.unit.v;
  } else if (rule != nullptr && rule->listed()) {
    of.varying.push_back({access.rule, &access});
    return;
  } else if (rule != nullptr && rule->rule.separate) {
    for (std::uint32_t n = 0; n < rule->rule.limit; ++n) {
      if (!expert_ || std::cmp_equal(n, *expert_))
        of.keys.push_back({in_file(access.part_in_file(n)), access.rule, n});
    }
    return;
  } else {
    possible.key = in_file(access.file);
  }
  of.keys.push_back(std::move(possible));
}

bool KeyBounds::occurs_in(const Series& series, const PossibleKey& possible,
                          std::size_t place) const {
  if (possible.rule == kNone) return true;
  if (possible.number == kNone)
    return series.hits_before(place)[possible.rule] != series.hits_before(place + 1)[possible.rule];
  const auto set = series.set_of(series.outline->rules[possible.rule], place);
  return (set[possible.number / 64] >> (possible.number % 64) & 1) != 0;
}

// Assumes the last place in the step that a row with this key can have.
bool KeyBounds::is_after_cursor(const AccessKey& key, StepId step) const {
  if (!after_) return true;
  const auto values = compare_values(key, *after_, order_);
  return std::is_neq(values) ? std::is_gt(values) : step >= after_->place.step;
}

// Assumes the first such place.
bool KeyBounds::is_before_last(const AccessKey& key, StepId step, const AccessKey* last) const {
  if (last == nullptr) return true;
  const auto values = compare_values(key, *last, order_);
  return std::is_neq(values) ? std::is_lt(values) : AccessId{.step = step} < last->place;
}

bool KeyBounds::can_have_part_in_range(const Series& series, const Varying& of, StepId step,
                                       std::size_t place, const AccessKey* last) const {
  const auto fits = [&](const AccessKey& key) {
    return is_after_cursor(key, step) && is_before_last(key, step, last);
  };
  if (order_.by == AccessSort::ByBytes) {
    const std::uint64_t parts =
        series.parts_before(place + 1)[of.rule] - series.parts_before(place)[of.rule];
    AccessKey key;
    key.a = parts * of.access->unit.v;
    return parts != 0 && fits(key);
  }
  bool found = false;
  series.for_each_listed(place, [&](std::uint32_t rule, std::span<const std::uint32_t> listed) {
    found |= rule == of.rule && std::ranges::any_of(listed, [&](std::uint32_t n) {
               return fits(in_file(of.access->part_in_file(n)));
             });
  });
  return found;
}

bool KeyBounds::can_hold(StepId id, const AccessKey* last) const {
  if (id.v >= index_.steps().size()) return true;
  const IndexedStep& step = index_.steps()[id.v];
  if (step.series == kNone) return true;  // damaged, or without accesses
  const SeriesKeys& of = series_[step.series];
  const Series& series = index_.series()[step.series];
  for (const PossibleKey& each : of.keys) {
    if (!is_after_cursor(each.key, id)) continue;
    if (!is_before_last(each.key, id, last)) break;
    if (occurs_in(series, each, step.place)) return true;
  }
  return std::ranges::any_of(of.varying, [&](const Varying& each) {
    return can_have_part_in_range(series, each, id, step.place, last);
  });
}

}  // namespace tt
