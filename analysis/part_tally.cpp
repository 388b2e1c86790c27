#include "analysis/part_tally.h"

#include <algorithm>
#include <array>

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

void PartTally::count(const Series& series, std::size_t from, std::size_t to) {
  if (series_ == &series && from_ == from && to_ == to) return;
  series_ = &series;
  from_ = from;
  to_ = to;
  const std::vector<OutlineRule>& rules = series.outline->rules;
  totals_.assign(std::size_t{series.outline->words} * 64, 0);
  for (std::size_t at = from; at < to; at += kMostInLane)
    add_lanes(series, at, std::min(to, at + kMostInLane));

  numbers_.resize(std::max(numbers_.size(), rules.size()));
  counts_.resize(numbers_.size());
  for (auto& numbers : numbers_) numbers.clear();
  for (auto& counts : counts_) counts.clear();
  if (series.number_ends[from] != series.number_ends[to]) {
    for (std::size_t place = from; place < to; ++place)
      series.for_each_listed(place, [&](std::uint32_t rule, std::span<const std::uint32_t> listed) {
        numbers_[rule].insert(numbers_[rule].end(), listed.begin(), listed.end());
      });
  }
  for (std::size_t r = 0; r < rules.size(); ++r) {
    auto& counts = counts_[r];
    const std::size_t bits = std::size_t{rules[r].words} * 64;
    for (std::uint32_t n = 0; n < bits; ++n)
      if (const std::uint32_t times = totals_[std::size_t{rules[r].first_word} * 64 + n])
        counts.push_back({n, times});
    std::ranges::sort(numbers_[r]);
    for (const std::uint32_t n : numbers_[r]) {
      if (counts.empty() || counts.back().number != n) counts.push_back({n, 0});
      ++counts.back().count;
    }
  }
}

}  // namespace tt
