#include "analysis/aggregate/part_tally.h"

#include <algorithm>
#include <bit>

namespace tt {

namespace {

// Appends a count for every n below `limit` with `times(n)` > 0.
template <class Times>
void add_counts(std::size_t limit, Times times, std::vector<PartTally::Count>& counts) {
  for (std::uint32_t n = 0; n < limit; ++n)
    if (const std::uint32_t count = times(n)) counts.push_back({n, count});
}

}  // namespace

// Counts the parts of a single step: each occurs once.
void PartTally::list_one(const Series& series, std::size_t place) {
  const std::vector<OutlineRule>& rules = series.outline->rules;
  for (std::size_t r = 0; r < rules.size(); ++r) {
    const auto set = series.set_of(rules[r], place);
    for (std::uint32_t w = 0; w < set.size(); ++w)
      for (std::uint64_t word = set[w]; word != 0; word &= word - 1)
        counts_[r].push_back({w * 64 + static_cast<std::uint32_t>(std::countr_zero(word)), 1});
  }
  series.for_each_listed(place, [&](std::uint32_t rule, std::span<const std::uint32_t> listed) {
    for (const std::uint32_t n : listed) counts_[rule].push_back({n, 1});
  });
}

void PartTally::count(const Series& series, std::size_t from, std::size_t to) {
  if (series_ == &series && from_ == from && to_ == to) return;
  series_ = &series;
  from_ = from;
  to_ = to;
  const std::vector<OutlineRule>& rules = series.outline->rules;
  numbers_.resize(std::max(numbers_.size(), rules.size()));
  counts_.resize(numbers_.size());
  for (auto& numbers : numbers_) numbers.clear();
  for (auto& counts : counts_) counts.clear();
  if (to == from + 1) return list_one(series, from);

  sets_.restart(series.outline->words);
  for (std::size_t place = from; place < to; ++place) sets_.add(series.sets[place]);
  if (series.number_ends[from] != series.number_ends[to]) {
    for (std::size_t place = from; place < to; ++place)
      series.for_each_listed(place, [&](std::uint32_t rule, std::span<const std::uint32_t> listed) {
        numbers_[rule].insert(numbers_[rule].end(), listed.begin(), listed.end());
      });
  }
  for (std::size_t r = 0; r < rules.size(); ++r) {
    auto& counts = counts_[r];
    const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(0, rules[r].rule.limit));
    if (rules[r].words != 0) {
      const std::size_t first = std::size_t{rules[r].first_word} * 64;
      add_counts(limit, [&](std::uint32_t n) { return sets_.total(first + n); }, counts);
    } else if (numbers_[r].size() > limit / 8) {
      std::vector<std::uint32_t> table(limit);
      for (const std::uint32_t n : numbers_[r]) ++table[n];
      add_counts(limit, [&](std::uint32_t n) { return table[n]; }, counts);
    } else {
      std::ranges::sort(numbers_[r]);
      for (const std::uint32_t n : numbers_[r]) {
        if (counts.empty() || counts.back().number != n) counts.push_back({n, 0});
        ++counts.back().count;
      }
    }
  }
}

}  // namespace tt
