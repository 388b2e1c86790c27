// Paging and sorting of long lists, and the cancellation callback.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tt {

struct PageRange {
  std::uint64_t from = 0;   // index of the first row
  std::uint64_t limit = 0;  // maximum number of rows
  // Whether row `i` of the complete list is on the page.
  constexpr bool contains(std::uint64_t i) const { return i >= from && i - from < limit; }
};

inline constexpr PageRange kAllRows{.from = 0, .limit = UINT64_MAX};

template <class Row>
struct Page {
  std::uint64_t total = 0;  // rows of the complete list
  std::vector<Row> rows;    // rows of the page; fewer than the limit at the end of the list
  friend bool operator==(const Page&, const Page&) = default;
};

// Rows with equal keys keep their natural order, in both directions. Rows without a key
// come last, in both directions.
template <class By>
struct Order {
  By by{};
  bool descending = false;
  friend constexpr bool operator==(const Order&, const Order&) = default;
};

// Cancellation callback: returns false to cancel. Functions that read many steps call it at
// least once before every step, and return Kind::Cancelled after it returned false.
using ContinueCheck = std::function<bool()>;
inline bool never_cancel() { return true; }

}  // namespace tt
