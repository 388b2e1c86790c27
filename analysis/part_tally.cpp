#include "analysis/part_tally.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tt {

namespace {

// Eight bits, each in the lowest bit of a byte of its own: so that eight counters go on
// with one addition.
constexpr std::array<std::uint64_t, 256> kSpread = [] {
  std::array<std::uint64_t, 256> table{};
  for (std::uint64_t i = 0; i < 256; ++i)
    for (std::uint64_t bit = 0; bit < 8; ++bit) table[i] |= (i >> bit & 1) << (8 * bit);
  return table;
}();
constexpr std::size_t kMostInLane = 255;

void add_counts(std::span<const std::uint32_t> times, std::vector<PartTally::Count>& counts) {
  for (std::uint32_t n = 0; n < times.size(); ++n)
    if (times[n] != 0) counts.push_back({n, times[n]});
}

}  // namespace

// The sets of so many steps that no counter overflows.
void PartTally::add_lanes(const Series& series, std::size_t from, std::size_t to) {
  const std::size_t words = series.outline->words;
  lanes_.assign(words * 8, 0);
  for (std::size_t place = from; place < to; ++place) {
    const auto sets = series.sets[place];
    for (std::size_t w = 0; w < words; ++w) {
      std::uint64_t* lane = &lanes_[w * 8];
      for (std::uint64_t word = sets[w]; word != 0; word >>= 8) *lane++ += kSpread[word & 0xFF];
    }
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    std::uint32_t* total = &totals_[i * 8];
    for (std::uint64_t lane = lanes_[i]; lane != 0; lane >>= 8)
      *total++ += static_cast<std::uint32_t>(lane & 0xFF);
  }
}

// The parts of one step: each is there once.
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

  totals_.assign(std::size_t{series.outline->words} * 64, 0);
  for (std::size_t at = from; at < to; at += kMostInLane)
    add_lanes(series, at, std::min(to, at + kMostInLane));
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
      add_counts(std::span(totals_).subspan(std::size_t{rules[r].first_word} * 64, limit), counts);
    } else if (numbers_[r].size() > limit / 8) {
      std::vector<std::uint32_t> table(limit);
      for (const std::uint32_t n : numbers_[r]) ++table[n];
      add_counts(table, counts);
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
