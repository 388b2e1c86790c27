// Items that are always read together behave in a cache like one item, so simulations of caches
// read blocks of items. A decode of a dense model is the row of its token and then one block with
// all other weights, thousands of times.
//
// Item b follows a if each read of a is directly followed by one of b, and each read of b directly
// preceded by one of a. A block is a longest chain of items that follow each other. All reads of a
// block have the same reuse distance. Optimal replacement holds a prefix of it: what it evicts
// first is the end of the block, whose next read is the farthest; and nothing is read between the
// items, so any other item is needed before the whole block or after it.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "analysis/common/cancel.h"
#include "analysis/common/page.h"
#include "analysis/weights/weight_reads.h"

namespace tt {

struct ReadBlock {
  std::uint64_t size = 0;                  // total of the items
  std::uint32_t first_end = 0, items = 0;  // in ReadBlocks::ends
};

struct ReadBlocks {
  std::vector<ReadBlock> blocks;      // in order of first read
  std::vector<std::uint32_t> of;      // per item: its block, if it is the first item of it
  std::vector<std::uint64_t> ends{};  // of the items of each block: the sum of sizes up to here

  // How many items of a block are within its first `held` bytes.
  std::uint64_t whole_items(const ReadBlock& block, std::uint64_t held) const;
  // Calls `each(block)`, the index in `blocks`, for each read of a block.
  template <class Each>
  std::expected<void, TraceError> for_each(const ReadSequence& sequence,
                                           const ContinueCheck& keep_going, Each each) const {
    CancelCheck cancel_check(keep_going);
    for (std::size_t i = 0; i < sequence.reads.size();) {
      if (!cancel_check.may_continue()) return std::unexpected(cancelled_error());
      const std::uint32_t block = of[sequence.reads[i]];
      each(block);
      i += blocks[block].items;
    }
    return {};
  }
};
// The only error is Cancelled.
std::expected<ReadBlocks, TraceError> read_blocks(const ReadSequence& sequence,
                                                  const ContinueCheck& keep_going);

}  // namespace tt
