// What a bench saw beside what it may be, worded the same in every bench.
#pragma once

#include <format>
#include <string>

namespace tt::bench {

enum class Bound { AtMost, AtLeast };

// "at most 50: 0.43 of it, kept". The ratio is the share of the budget that was used;
// for AtLeast the share of what was reached that would have been enough.
inline std::string verdict(double figure, Bound bound, double budget) {
  const bool most = bound == Bound::AtMost;
  const double ratio = most ? figure / budget : budget / figure;
  return std::format("{} {:g}: {:.2f} of it, {}", most ? "at most" : "at least", budget, ratio,
                     ratio <= 1 ? "kept" : "MISSED");
}

}  // namespace tt::bench
