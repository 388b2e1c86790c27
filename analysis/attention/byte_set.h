// A set of byte offsets, stored as ranges. What a step reads or writes of a cache is usually
// one or two ranges, regardless of its size. Value type.
#pragma once

#include <cstdint>
#include <vector>

namespace tt {

class ByteSet {
 public:
  ByteSet() = default;
  static ByteSet range(std::uint64_t begin, std::uint64_t end);  // [begin, end)
  // The union of [b, b + length) for each b of `begins`, which may be unsorted and have
  // duplicates.
  static ByteSet of(std::vector<std::uint64_t> begins, std::uint64_t length);

  void add(const ByteSet& other);
  ByteSet common(const ByteSet& other) const;  // intersection
  std::uint64_t size() const;                  // bytes
  bool empty() const { return ranges_.empty(); }

 private:
  struct Range {
    std::uint64_t begin, end;
  };
  std::vector<Range> ranges_;  // ascending, disjoint and not adjacent
};

}  // namespace tt
