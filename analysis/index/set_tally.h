// Counts how often each number occurs in a sequence of bit sets, in the format of
// OutlineRule's sets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tt {

class SetTally {
 public:
  explicit SetTally(std::size_t words = 0) { restart(words); }
  // Clears the counts; the following sets have `words` words of 64 bits.
  void restart(std::size_t words) {
    lanes_.assign(words * 8, 0);
    totals_.assign(words * 64, 0);
    added_ = 0;
  }
  void add(std::span<const std::uint64_t> set) {
    for (std::size_t w = 0; w < set.size(); ++w) {
      std::uint64_t* lane = &lanes_[w * 8];
      for (std::uint64_t word = set[w]; word != 0; word >>= 8) *lane++ += kSpread[word & 0xFF];
    }
    if (++added_ == kMaxInLane) empty_lanes();
  }
  std::uint32_t total(std::size_t number) const {
    return totals_[number] +
           static_cast<std::uint32_t>(lanes_[number / 8] >> (8 * (number % 8)) & 0xFF);
  }

 private:
  static constexpr std::size_t kMaxInLane = 255;
  // Spreads eight bits to the lowest bits of eight bytes, so that one addition increments
  // eight counters.
  static constexpr std::array<std::uint64_t, 256> kSpread = [] {
    std::array<std::uint64_t, 256> table{};
    for (std::uint64_t i = 0; i < 256; ++i)
      for (std::uint64_t bit = 0; bit < 8; ++bit) table[i] |= (i >> bit & 1) << (8 * bit);
    return table;
  }();

  void empty_lanes() {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      std::uint32_t* total = &totals_[i * 8];
      for (std::uint64_t lane = lanes_[i]; lane != 0; lane >>= 8)
        *total++ += static_cast<std::uint32_t>(lane & 0xFF);
      lanes_[i] = 0;
    }
    added_ = 0;
  }

  std::vector<std::uint64_t> lanes_;  // eight 8-bit counters each
  std::vector<std::uint32_t> totals_;
  std::size_t added_ = 0;  // sets added since the lanes were last flushed
};

}  // namespace tt
