// Numbered items in the order of their last reads. Each read gives an item the next place; the
// places are renumbered when they are used up, so there are at most twice as many as items. A
// value; not for several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tracer/format/model/ids.h"

namespace tt {

class RecencyOrder {
 public:
  explicit RecencyOrder(std::size_t items)
      : place_of_(items, kNone), item_at_(2 * items + 1, kNone) {}

  std::size_t places() const { return item_at_.size(); }
  // kNone: not read so far; no item is at this place any more.
  std::uint32_t place_of(std::uint32_t item) const { return place_of_[item]; }
  std::uint32_t item_at(std::uint32_t place) const { return item_at_[place]; }

  // Renumbers the places if there is none for another read: calls `moved(from, to)` for each item,
  // in order, with from >= to, and then `done(used)` with the number of places in use.
  template <class Moved, class Done>
  void make_room(Moved moved, Done done) {
    if (next_ < item_at_.size()) return;
    std::uint32_t to = 0;
    for (std::uint32_t from = 0; from < next_; ++from) {
      const std::uint32_t item = std::exchange(item_at_[from], kNone);
      if (item == kNone) continue;
      item_at_[to] = item;
      place_of_[item] = to;
      moved(from, to++);
    }
    next_ = to;
    done(to);
  }
  // There must be room. Returns the new place of the item.
  std::uint32_t move_to_end(std::uint32_t item) {
    if (place_of_[item] != kNone) item_at_[place_of_[item]] = kNone;
    item_at_[next_] = item;
    return place_of_[item] = next_++;
  }

 private:
  std::vector<std::uint32_t> place_of_;  // per item
  std::vector<std::uint32_t> item_at_;   // per place
  std::uint32_t next_ = 0;
};

}  // namespace tt
