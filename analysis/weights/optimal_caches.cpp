#include "analysis/weights/optimal_caches.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace tt {

OptimalCaches::OptimalCaches(const ReadBlocks& blocks, std::span<const Bytes> capacities)
    : blocks_(blocks),
      order_(blocks.blocks.size()),
      bytes_(blocks.blocks.size() * capacities.size()),
      whole_(blocks.blocks.size()),
      first_(capacities.size()),
      in_part_(capacities.size()),
      whole_from_(capacities.size()) {
  assert(capacities.size() <= kMax && std::ranges::is_sorted(capacities));
  for (const Bytes capacity : capacities) of_no_block_.push_back(capacity.v);
  std::size_t size = order_.places();
  for (auto& level : with_bytes_) {
    size = (size + kGroup - 1) / kGroup * kGroup;
    level.resize(size);
    size /= kGroup;
  }
}

void OptimalCaches::read(std::uint32_t block) {
  auto& [places, groups, all] = with_bytes_;
  order_.make_room([&](std::uint32_t from, std::uint32_t to) { places[to] = places[from]; },
                   [&](std::uint32_t used) {
                     std::fill(places.begin() + used, places.end(), 0);
                     std::ranges::fill(groups, 0);
                     std::ranges::fill(all, 0);
                     std::ranges::fill(first_, 0);
                     for (std::uint32_t place = 0; place < used; ++place)
                       set_bytes_at(place, places[place]);
                   });
  Caches caches = 0;
  if (const std::uint32_t place = order_.place_of(block); place != kNone) {
    save(block, place);
    caches = std::exchange(places[place], 0);
  }
  set_bytes_at(order_.move_to_end(block), caches);
}

void OptimalCaches::set_bytes_at(std::uint32_t place, Caches caches) {
  for (auto& level : with_bytes_) {
    level[place] |= caches;
    place /= kGroup;
  }
}

void OptimalCaches::save(std::uint32_t block, std::uint32_t place) {
  const ReadBlock& of = blocks_.blocks[block];
  const std::size_t n = of_no_block_.size();
  const Caches all = n == kMax ? ~Caches{0} : (Caches{1} << n) - 1;
  for (Caches rest = all & ~whole_[block]; rest != 0;) {
    const auto cache = static_cast<std::size_t>(std::bit_width(rest) - 1);
    const Caches bit = Caches{1} << cache;
    rest ^= bit;
    std::uint64_t& bytes = bytes_of(block, cache);
    bytes += take_from_older(cache, place, of.size - bytes);
    if (bytes == 0) break;  // and none in the smaller ones
    with_bytes_[0][place] |= bit;
    if (bytes == of.size) {
      whole_[block] |= bit;
    } else {
      in_part_[cache].reads += blocks_.whole_items(of, bytes);
      in_part_[cache].bytes += bytes;
    }
  }
  if (whole_[block] == 0) return;
  Saved& whole = whole_from_[static_cast<std::size_t>(std::countr_zero(whole_[block]))];
  whole.reads += of.items;
  whole.bytes += of.size;
}

std::uint64_t OptimalCaches::take_from_older(std::size_t cache, std::uint32_t place,
                                             std::uint64_t needed) {
  const Caches bit = Caches{1} << cache;
  std::uint64_t taken = 0;
  while (taken < needed) {
    place = last_with_bytes(cache, place);
    const bool of_block = place != kNone;
    std::uint64_t& bytes = of_block ? bytes_of(order_.item_at(place), cache) : of_no_block_[cache];
    const std::uint64_t some = std::min(bytes, needed - taken);
    bytes -= some;
    taken += some;
    if (!of_block) break;
    whole_[order_.item_at(place)] &= ~bit;
    if (bytes == 0) with_bytes_[0][place] &= ~bit;
  }
  return taken;
}

// The last place before `end` whose block has bytes in the cache; kNone: none.
std::uint32_t OptimalCaches::last_with_bytes(std::size_t cache, std::uint32_t end) {
  auto& [places, groups, all] = with_bytes_;
  const Caches bit = Caches{1} << cache;
  // Whether a group has none; bits of it that are no longer true are removed.
  const auto has_none = [&](std::vector<Caches>& of, const std::vector<Caches>& below,
                            std::uint32_t group) {
    if ((of[group] & bit) == 0) return true;
    Caches bits = 0;
    for (std::uint32_t i = group * kGroup; i < (group + 1) * kGroup; ++i) bits |= below[i];
    return ((of[group] = bits) & bit) == 0;
  };
  const std::uint32_t before = end;
  while (end > first_[cache]) {
    if (end % (kGroup * kGroup) == 0 && has_none(all, groups, end / (kGroup * kGroup) - 1)) {
      end -= kGroup * kGroup;
    } else if (end % kGroup == 0 && has_none(groups, places, end / kGroup - 1)) {
      end -= kGroup;
    } else if ((places[--end] & bit) != 0) {
      return end;
    }
  }
  first_[cache] = std::max(first_[cache], before);  // only the newest places get bytes
  return kNone;
}

std::vector<OptimalCaches::Saved> OptimalCaches::saved() const {
  std::vector<Saved> out;
  Saved whole;
  for (std::size_t cache = 0; cache < in_part_.size(); ++cache) {
    whole.reads += whole_from_[cache].reads;
    whole.bytes += whole_from_[cache].bytes;
    out.push_back({.reads = whole.reads + in_part_[cache].reads,
                   .bytes = whole.bytes + in_part_[cache].bytes});
  }
  return out;
}

}  // namespace tt
