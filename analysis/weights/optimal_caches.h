// Optimal replacement (Belady) at several capacities in one pass over the reads, without knowing
// the future. Not for several threads.
//
// A byte that is read at time p and next at time i is saved if it is kept from p to i: an interval.
// Optimal replacement evicts the byte with the farthest next read. It therefore keeps an interval
// if it fits in beside the intervals kept that end before it; those that end later do not matter.
// So intervals can be decided in the order of their ends, that is at the read that ends them.
//
// A cache of C bytes has C places for a byte. A new interval [p, i) can have any place that has
// been free since p or longer. It takes one that became free as late as possible, which leaves the
// older ones to intervals that begin earlier. A place is free since the end of its last interval,
// which was a read of some item. So each item has a number of bytes per cache: the places that are
// free since its last read. At the start, all places are free and belong to no item. A read of an
// item
//   1. uses the places of the item itself,
//   2. then those of the items whose last reads are before its own, the most recent one first, and
//      at last those of no item,
//   3. and all places that it used belong to it afterwards: this many of its bytes were saved.
// If all bytes are saved from the item's own places, only its position in the order changes.
//
// A larger cache never saves less of a read. So when a read saves nothing in one cache, the smaller
// ones need not be looked at, and the caches that save it completely are the largest ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/weights/read_blocks.h"
#include "analysis/weights/recency_order.h"

namespace tt {

class OptimalCaches {
 public:
  static constexpr std::size_t kMax = 64;
  // At most kMax capacities, ascending. `blocks` must outlive this object.
  OptimalCaches(const ReadBlocks& blocks, std::span<const Bytes> capacities);

  void read(std::uint32_t block);

  // The reads and bytes that each cache has saved.
  struct Saved {
    std::uint64_t reads = 0, bytes = 0;
  };
  std::vector<Saved> saved() const;

 private:
  using Caches = std::uint64_t;  // a bit for each cache, the smallest first

  void save(std::uint32_t block, std::uint32_t place);
  std::uint64_t take_from_older(std::size_t cache, std::uint32_t place, std::uint64_t needed);
  std::uint32_t last_with_bytes(std::size_t cache, std::uint32_t end);
  void set_bytes_at(std::uint32_t place, Caches caches);
  std::uint64_t& bytes_of(std::uint32_t block, std::size_t cache) {
    return bytes_[block * of_no_block_.size() + cache];
  }

  const ReadBlocks& blocks_;
  RecencyOrder order_;
  std::vector<std::uint64_t> bytes_;        // per block and cache: its places
  std::vector<std::uint64_t> of_no_block_;  // per cache
  std::vector<Caches> whole_;               // per block: where bytes_of() is its size
  // Per place in the order: in which caches its block has bytes. Then the same for each kGroup
  // places, and for each kGroup of these groups; these may have too many bits.
  static constexpr std::uint32_t kGroup = 16;
  std::array<std::vector<Caches>, 3> with_bytes_;
  std::vector<std::uint32_t> first_;  // per cache: no place before this one has bytes
  std::vector<Saved> in_part_;        // per cache: of blocks that were not saved completely
  std::vector<Saved> whole_from_;     // per cache: of blocks saved completely in it and larger ones
};

}  // namespace tt
