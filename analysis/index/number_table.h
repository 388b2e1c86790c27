// An append-only table of fixed-width rows of numbers in chunked storage: growing copies
// nothing and never allocates a second, larger buffer. The first blocks are small, because most
// sessions have few steps. Movable.
#pragma once

#include <algorithm>
#include <bit>
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
    const Place at = place_of(row);
    return {blocks_[at.block].get() + at.row * width_, width_};
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

 private:
  // Rows per block: kFirst, kFirst, then doubled until kRows rows are stored, then kRows.
  static constexpr std::size_t kFirst = 4, kRows = 256;
  static constexpr std::size_t kGrowing = std::bit_width(kRows / kFirst);  // blocks below kRows
  struct Place {
    std::size_t block, row;  // row in the block
  };
  static Place place_of(std::size_t row) {
    if (row >= kRows) return {.block = kGrowing + row / kRows - 1, .row = row % kRows};
    const auto block = static_cast<std::size_t>(std::bit_width(row / kFirst));
    return {.block = block, .row = block == 0 ? row : row - (kFirst << (block - 1))};
  }
  static std::size_t rows_of(std::size_t block) {
    if (block >= kGrowing) return kRows;
    return block == 0 ? kFirst : kFirst << (block - 1);
  }
  std::span<T> add() {
    const Place at = place_of(size_++);
    if (at.row == 0)
      blocks_.push_back(std::make_unique_for_overwrite<T[]>(rows_of(at.block) * width_));
    return {blocks_.back().get() + at.row * width_, width_};
  }

  std::size_t width_, size_ = 0;
  std::vector<std::unique_ptr<T[]>> blocks_;
};

}  // namespace tt
