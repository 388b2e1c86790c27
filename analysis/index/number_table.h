// An append-only table of fixed-width rows of numbers in chunked storage: growing copies
// nothing and never allocates a second, larger buffer. Movable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace tt {

template <class T>
class NumberTable {
 public:
  explicit NumberTable(std::size_t width = 0) : width_(width) {}

  std::size_t size() const { return size_; }
  std::size_t width() const { return width_; }
  std::span<const T> operator[](std::size_t row) const {
    return {blocks_[row / kRows].get() + row % kRows * width_, width_};
  }
  // Appends a row of zeros, or a copy of the last row (the table must not be empty). The
  // span is valid until the next row is added.
  std::span<T> add_zeros() {
    const std::span<T> row = add();
    std::ranges::fill(row, T{});
    return row;
  }
  std::span<T> add_copy_of_last() {
    const std::span<const T> last = (*this)[size_ - 1];
    const std::span<T> row = add();
    std::ranges::copy(last, row.begin());
    return row;
  }
  std::size_t memory_bytes() const { return size_ * width_ * sizeof(T); }

 private:
  static constexpr std::size_t kRows = 256;  // per block
  std::span<T> add() {
    if (size_ % kRows == 0) blocks_.push_back(std::make_unique_for_overwrite<T[]>(kRows * width_));
    const std::size_t at = size_++ % kRows;
    return {blocks_.back().get() + at * width_, width_};
  }

  std::size_t width_, size_ = 0;
  std::vector<std::unique_ptr<T[]>> blocks_;
};

}  // namespace tt
