#include "analysis/cell_set.h"

#include <algorithm>
#include <iterator>

namespace tt {

CellSet CellSet::stretch(std::int64_t begin, std::int64_t end) {
  CellSet set;
  if (begin < end) set.stretches_.push_back({begin, end});
  return set;
}

CellSet CellSet::of(std::vector<std::int64_t> cells) {
  if (!std::ranges::is_sorted(cells)) std::ranges::sort(cells);
  CellSet set;
  for (const std::int64_t cell : cells) {
    if (!set.stretches_.empty() && cell < set.stretches_.back().end) continue;
    if (!set.stretches_.empty() && cell == set.stretches_.back().end) {
      ++set.stretches_.back().end;
    } else {
      set.stretches_.push_back({cell, cell + 1});
    }
  }
  return set;
}

void CellSet::add(const CellSet& other) {
  std::vector<Stretch> all;
  std::ranges::merge(stretches_, other.stretches_, std::back_inserter(all), {}, &Stretch::begin,
                     &Stretch::begin);
  stretches_.clear();
  for (const Stretch& next : all) {
    if (!stretches_.empty() && next.begin <= stretches_.back().end) {
      stretches_.back().end = std::max(stretches_.back().end, next.end);
    } else {
      stretches_.push_back(next);
    }
  }
}

CellSet CellSet::moved(std::int64_t by) const {
  CellSet set = *this;
  for (Stretch& stretch : set.stretches_) {
    stretch.begin += by;
    stretch.end += by;
  }
  return set;
}

CellSet CellSet::common(const CellSet& other) const {
  CellSet set;
  for (std::size_t a = 0, b = 0; a < stretches_.size() && b < other.stretches_.size();) {
    const Stretch &x = stretches_[a], &y = other.stretches_[b];
    const std::int64_t begin = std::max(x.begin, y.begin), end = std::min(x.end, y.end);
    if (begin < end) set.stretches_.push_back({begin, end});
    ++(x.end < y.end ? a : b);
  }
  return set;
}

std::uint64_t CellSet::size() const {
  std::uint64_t cells = 0;
  for (const Stretch& stretch : stretches_)
    cells += static_cast<std::uint64_t>(stretch.end - stretch.begin);
  return cells;
}

}  // namespace tt
