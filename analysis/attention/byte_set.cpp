#include "analysis/attention/byte_set.h"

#include <algorithm>
#include <iterator>

namespace tt {

ByteSet ByteSet::stretch(std::uint64_t begin, std::uint64_t end) {
  ByteSet set;
  if (begin < end) set.stretches_.push_back({begin, end});
  return set;
}

ByteSet ByteSet::of(std::vector<std::uint64_t> begins, std::uint64_t length) {
  if (!std::ranges::is_sorted(begins)) std::ranges::sort(begins);
  ByteSet set;
  if (length == 0) return set;
  for (const std::uint64_t begin : begins) {
    if (!set.stretches_.empty() && begin <= set.stretches_.back().end) {
      set.stretches_.back().end = begin + length;
    } else {
      set.stretches_.push_back({begin, begin + length});
    }
  }
  return set;
}

void ByteSet::add(const ByteSet& other) {
  if (other.empty()) return;
  std::vector<Stretch> all;
  all.reserve(stretches_.size() + other.stretches_.size());
  std::ranges::merge(stretches_, other.stretches_, std::back_inserter(all), {}, &Stretch::begin,
                     &Stretch::begin);
  stretches_.clear();
  for (const Stretch& next : all) {
    if (!stretches_.empty() && next.begin <= stretches_.back().end) {
      stretches_.back().end = std::max(stretches_.back().end, next.end);
    } else {
      stretches_.push_back(next);
    }
  }
}

ByteSet ByteSet::common(const ByteSet& other) const {
  ByteSet set;
  for (std::size_t a = 0, b = 0; a < stretches_.size() && b < other.stretches_.size();) {
    const Stretch &x = stretches_[a], &y = other.stretches_[b];
    const std::uint64_t begin = std::max(x.begin, y.begin), end = std::min(x.end, y.end);
    if (begin < end) set.stretches_.push_back({begin, end});
    ++(x.end < y.end ? a : b);
  }
  return set;
}

std::uint64_t ByteSet::size() const {
  std::uint64_t bytes = 0;
  for (const Stretch& stretch : stretches_) bytes += stretch.end - stretch.begin;
  return bytes;
}

}  // namespace tt
