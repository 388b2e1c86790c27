// The one rule for quantiles (docs/glossary.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

namespace tt {

// Nearest rank: the smallest value such that at least the share `q` (0 to 1) of all values is not
// greater. Always one of the values: 95 % of 3 values are all 3. `sorted` is ascending; empty:
// nullopt.
template <class Value>
std::optional<Value> quantile(std::span<const Value> sorted, double q) {
  if (sorted.empty()) return std::nullopt;
  const auto n = static_cast<double>(sorted.size());
  // Not above an exact product because of its rounding: 0.95 * 20 is 19.
  const auto rank = static_cast<std::size_t>(std::ceil(q * n - 1e-9));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace tt
