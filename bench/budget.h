// What a bench saw beside what it may be, worded the same in every bench.
#pragma once

#include <format>
#include <string>

namespace tt::bench {

enum class Bound { AtMost, AtLeast };

// How many budgets this program missed so far.
inline int& missed() {
  static int count = 0;
  return count;
}
// Of a bench that came to its end: 1 where a budget was missed.
inline int exit_code() { return missed() == 0 ? 0 : 1; }

// "at most 50: 0.43 of it, kept". The ratio is the share of the budget that was used;
// for AtLeast the share of what was reached that would have been enough.
inline std::string verdict(double figure, Bound bound, double budget) {
  const bool most = bound == Bound::AtMost;
  const double ratio = most ? figure / budget : budget / figure;
  if (!(ratio <= 1)) ++missed();
  return std::format("{} {:g}: {:.2f} of it, {}", most ? "at most" : "at least", budget, ratio,
                     ratio <= 1 ? "kept" : "MISSED");
}

}  // namespace tt::bench
