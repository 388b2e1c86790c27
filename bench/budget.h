// Comparison of a measured value with its budget, with the same text in every benchmark.
#pragma once

#include <format>
#include <string>

namespace tt::bench {

enum class Bound { AtMost, AtLeast };

// Number of budgets that this process did not meet.
inline int& missed_budgets() {
  static int count = 0;
  return count;
}
// Exit code of a completed benchmark: 1 if a budget was not met.
inline int exit_code() { return missed_budgets() == 0 ? 0 : 1; }

// "at most 50: 0.43 of it, kept". The ratio is figure / budget for AtMost, budget / figure for
// AtLeast; the budget is kept if it is at most 1.
inline std::string compare_with_budget(double figure, Bound bound, double budget) {
  const bool most = bound == Bound::AtMost;
  const double ratio = most ? figure / budget : budget / figure;
  if (!(ratio <= 1)) ++missed_budgets();
  return std::format("{} {:g}: {:.2f} of it, {}", most ? "at most" : "at least", budget, ratio,
                     ratio <= 1 ? "kept" : "MISSED");
}

}  // namespace tt::bench
