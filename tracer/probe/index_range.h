// A range of indices as users write it: N, N-M or N- (to the end), from 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tt {

struct IndexRange {
  std::uint64_t first = 0, last = UINT64_MAX;  // inclusive

  // nullopt: not a range. A number is at most UINT32_MAX.
  static std::optional<IndexRange> parse(std::string_view text);

  bool contains(std::uint64_t n) const { return first <= n && n <= last; }
  // Whether an index of [begin, end) is in the range.
  bool overlaps(std::uint64_t begin, std::uint64_t end) const {
    return begin <= last && end > first;
  }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

}  // namespace tt
