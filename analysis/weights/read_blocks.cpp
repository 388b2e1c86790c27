#include "analysis/weights/read_blocks.h"

#include <algorithm>
#include <limits>

namespace tt {

namespace {

constexpr std::uint32_t kVarious = kNone - 1;  // not always the same item, or none

void note(std::uint32_t& neighbour, std::uint32_t item) {
  neighbour = neighbour == kNone || neighbour == item ? item : kVarious;
}

}  // namespace

std::uint64_t ReadBlocks::whole_items(const ReadBlock& block, std::uint64_t held) const {
  const auto begin = ends.begin() + block.first_end, end = begin + block.items;
  return static_cast<std::uint64_t>(std::upper_bound(begin, end, held) - begin);
}

std::expected<ReadBlocks, TraceError> read_blocks(const ReadSequence& sequence,
                                                  const ContinueCheck& keep_going) {
  CancelCheck cancel_check(keep_going);
  const std::size_t items = sequence.items.size();
  std::vector<std::uint32_t> after(items, kNone), before(items, kNone);
  std::uint32_t previous = kVarious;
  for (const std::uint32_t item : sequence.reads) {
    if (!cancel_check.may_continue()) return std::unexpected(cancelled_error());
    note(before[item], previous);
    if (previous != kVarious) note(after[previous], item);
    previous = item;
  }
  if (previous != kVarious) after[previous] = kVarious;

  ReadBlocks out{.blocks = {}, .of = std::vector<std::uint32_t>(items, kNone)};
  const auto begins_chain = [&](std::uint32_t item) {
    const std::uint32_t leader = before[item];
    return leader == kVarious || after[leader] != item;
  };
  for (std::uint32_t first = 0; first < items; ++first) {
    if (before[first] == kNone || !begins_chain(first)) continue;
    std::uint32_t item = first;
    ReadBlock* block = nullptr;
    while (true) {
      const std::uint64_t size = sequence.size(item);
      // Sizes in a damaged file may be of any value.
      if (block == nullptr || size > std::numeric_limits<std::uint64_t>::max() - block->size) {
        out.of[item] = static_cast<std::uint32_t>(out.blocks.size());
        block = &out.blocks.emplace_back(
            ReadBlock{.first_end = static_cast<std::uint32_t>(out.ends.size())});
      }
      out.ends.push_back(block->size += size);
      ++block->items;
      const std::uint32_t next = after[item];
      if (next == kVarious || before[next] != item) break;
      item = next;
    }
  }
  return out;
}

}  // namespace tt
