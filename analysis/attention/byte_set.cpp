#include "analysis/attention/byte_set.h"

#include <algorithm>
#include <iterator>

namespace tt {

ByteSet ByteSet::range(std::uint64_t begin, std::uint64_t end) {
  ByteSet set;
  if (begin < end) set.ranges_.push_back({begin, end});
  return set;
}

ByteSet ByteSet::of(std::vector<std::uint64_t> begins, std::uint64_t length) {
  if (!std::ranges::is_sorted(begins)) std::ranges::sort(begins);
  ByteSet set;
  if (length == 0) return set;
  for (const std::uint64_t begin : begins) {
    if (!set.ranges_.empty() && begin <= set.ranges_.back().end) {
      set.ranges_.back().end = begin + length;
    } else {
      set.ranges_.push_back({begin, begin + length});
    }
  }
  return set;
}

void ByteSet::add(const ByteSet& other) {
  if (other.empty()) return;
  std::vector<Range> all;
  all.reserve(ranges_.size() + other.ranges_.size());
  std::ranges::merge(ranges_, other.ranges_, std::back_inserter(all), {}, &Range::begin,
                     &Range::begin);
  ranges_.clear();
  for (const Range& next : all) {
    if (!ranges_.empty() && next.begin <= ranges_.back().end) {
      ranges_.back().end = std::max(ranges_.back().end, next.end);
    } else {
      ranges_.push_back(next);
    }
  }
}

ByteSet ByteSet::common(const ByteSet& other) const {
  ByteSet set;
  for (std::size_t a = 0, b = 0; a < ranges_.size() && b < other.ranges_.size();) {
    const Range &x = ranges_[a], &y = other.ranges_[b];
    const std::uint64_t begin = std::max(x.begin, y.begin), end = std::min(x.end, y.end);
    if (begin < end) set.ranges_.push_back({begin, end});
    ++(x.end < y.end ? a : b);
  }
  return set;
}

std::uint64_t ByteSet::size() const {
  std::uint64_t bytes = 0;
  for (const Range& range : ranges_) bytes += range.end - range.begin;
  return bytes;
}

}  // namespace tt
