// Bytes of a memory as stretches: what a step writes and reads of a cache are mostly
// one or two, however many bytes they have. A value.
#pragma once

#include <cstdint>
#include <vector>

namespace tt {

class ByteSet {
 public:
  ByteSet() = default;
  static ByteSet stretch(std::uint64_t begin, std::uint64_t end);  // without end; empty if none
  // `length` bytes from each of `begins` on, which are in any order, repeated or not.
  static ByteSet of(std::vector<std::uint64_t> begins, std::uint64_t length);

  void add(const ByteSet& other);
  ByteSet common(const ByteSet& other) const;
  std::uint64_t size() const;  // bytes
  bool empty() const { return stretches_.empty(); }

 private:
  struct Stretch {
    std::uint64_t begin, end;
  };
  std::vector<Stretch> stretches_;  // ascending, with gaps between
};

}  // namespace tt
