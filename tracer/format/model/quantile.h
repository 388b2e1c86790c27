// The one rule for quantiles (docs/glossary.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

namespace tt {

// The place, among `count` sorted values (not 0), of the nearest rank: of the smallest value such
// that at least the share `q` (0 to 1) of all values is not greater.
inline std::size_t quantile_place(std::size_t count, double q) {
  // Not above an exact product because of its rounding: 0.95 * 20 is 19.
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(count) - 1e-9));
  return std::clamp<std::size_t>(rank, 1, count) - 1;
}

// Always one of the values: 95 % of 3 values are all 3. `sorted` is ascending; empty: nullopt.
template <class Value>
std::optional<Value> quantile(std::span<const Value> sorted, double q) {
  if (sorted.empty()) return std::nullopt;
  return sorted[quantile_place(sorted.size(), q)];
}

}  // namespace tt
