// A stretch of a long list, and the order that it is in.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tt {

struct PageRange {
  std::uint64_t from = 0;
  std::uint64_t limit = 0;
  // Whether row `i` of the whole list is on the page.
  constexpr bool holds(std::uint64_t i) const { return i >= from && i - from < limit; }
};

inline constexpr PageRange kAllRows{.from = 0, .limit = UINT64_MAX};

template <class Row>
struct Page {
  std::uint64_t total = 0;  // rows of the whole list
  std::vector<Row> rows;    // of the page; fewer where the list ends
  friend bool operator==(const Page&, const Page&) = default;
};

// Where rows are equal in what they are sorted by, their natural order decides
// in both directions. Rows that have no such value come last in both.
template <class By>
struct Order {
  By by{};
  bool descending = false;
  friend constexpr bool operator==(const Order&, const Order&) = default;
};

// Asked at least before every step by what walks through many of them; false:
// nobody wants the answer any more. The walk then ends with Kind::Cancelled.
using KeepGoing = std::function<bool()>;
inline bool always() { return true; }

}  // namespace tt
