// A stretch of a long list.
#pragma once

#include <cstdint>
#include <vector>

namespace tt {

struct PageRange {
  std::uint64_t from = 0;
  std::uint64_t limit = 0;
  // Whether row `i` of the whole list is on the page.
  constexpr bool holds(std::uint64_t i) const { return i >= from && i - from < limit; }
};

template <class Row>
struct Page {
  std::uint64_t total = 0;  // rows of the whole list
  std::vector<Row> rows;    // of the page; fewer where the list ends
  friend bool operator==(const Page&, const Page&) = default;
};

}  // namespace tt
