// An append-only list of byte strings in chunked storage: growing copies nothing and never
// allocates a second, larger buffer. Blocks double in size up to a limit. Value type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tt {

class BlobList {
 public:
  void add(std::span<const std::byte> piece) {
    if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < piece.size()) {
      const std::size_t doubled = blocks_.empty() ? kFirstBytes : 2 * blocks_.back().capacity();
      blocks_.emplace_back();
      blocks_.back().reserve(std::max(std::min(doubled, kBlockBytes), piece.size()));
    }
    std::vector<std::byte>& block = blocks_.back();
    places_.push_back({.block = static_cast<std::uint32_t>(blocks_.size() - 1),
                       .offset = static_cast<std::uint32_t>(block.size()),
                       .size = static_cast<std::uint32_t>(piece.size())});
    block.insert(block.end(), piece.begin(), piece.end());
  }
  std::span<const std::byte> operator[](std::size_t i) const {
    const Place& place = places_[i];
    return std::span(blocks_[place.block]).subspan(place.offset, place.size);
  }

 private:
  static constexpr std::size_t kFirstBytes = std::size_t{2} << 10, kBlockBytes = kFirstBytes << 6;
  struct Place {
    std::uint32_t block, offset, size;
  };
  std::vector<std::vector<std::byte>> blocks_;
  std::vector<Place> places_;
};

}  // namespace tt
