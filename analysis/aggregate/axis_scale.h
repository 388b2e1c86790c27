// Divides a range of integers (ns, tokens, bytes, rows) into pixels: pixel p covers
// [edge(p), edge(p + 1)). There are never more pixels than integers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "analysis/aggregate/trace_axis.h"

namespace tt {

class AxisScale {
 public:
  AxisScale() = default;
  AxisScale(Range<std::int64_t> range, std::uint32_t pixels)
      : from_(range.from),
        size_(range.to > range.from
                  ? static_cast<std::uint64_t>(range.to) - static_cast<std::uint64_t>(range.from)
                  : 0),
        pixels_(static_cast<std::uint32_t>(std::min<std::uint64_t>(pixels, size_))) {}

  std::uint32_t pixels() const { return pixels_; }
  Range<std::int64_t> range() const {
    return {from_, static_cast<std::int64_t>(static_cast<std::uint64_t>(from_) + size_)};
  }
  std::int64_t edge(std::uint32_t pixel) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(from_) + offset(pixel));
  }
  // `at` must be in range().
  std::uint32_t pixel_of(std::int64_t at) const {
    const auto distance = static_cast<std::uint64_t>(at) - static_cast<std::uint64_t>(from_);
    // The last pixel whose edge is <= `at`. The floating-point estimate is at most one off.
    auto p = static_cast<std::uint32_t>(std::min<double>(
        static_cast<double>(distance) / static_cast<double>(size_) * pixels_, pixels_ - 1.0));
    while (p > 0 && offset(p) > distance) --p;
    while (p + 1 < pixels_ && offset(p + 1) <= distance) ++p;
    return p;
  }
  // Calls `share(pixel, part)` for every pixel that overlaps [begin, end); `part` is the
  // fraction of [begin, end) in the pixel. Parts outside range() are skipped.
  template <class Share>
  void spread(std::int64_t begin, std::int64_t end, Share share) const {
    if (begin >= end || pixels_ == 0) return;
    const Range<std::int64_t> all = range();
    const double length = static_cast<double>(end) - static_cast<double>(begin);
    std::int64_t at = std::max(begin, all.from);
    const std::int64_t stop = std::min(end, all.to);
    if (at >= stop) return;
    for (std::uint32_t p = pixel_of(at); at < stop; ++p) {
      const std::int64_t next = p + 1 < pixels_ ? std::min(edge(p + 1), stop) : stop;
      share(p, static_cast<double>(next - at) / length);
      at = next;
    }
  }

 private:
  std::uint64_t offset(std::uint32_t pixel) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{size_} * pixel / pixels_);
  }

  std::int64_t from_ = 0;
  std::uint64_t size_ = 0;
  std::uint32_t pixels_ = 0;
};

}  // namespace tt
