// Whether figures rise or fall along an axis, such as the median of each day, by more than an
// arbitrary order of the same values would. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tt {

// With fewer points no trend is significant at 5 %, whatever the values are: of the 24 orders of 4
// values, 2 are as far apart as possible.
inline constexpr std::size_t kLeastTrendPoints = 5;

struct TrendTest {
  std::size_t points = 0;
  std::int64_t rises = 0;  // pairs of points that rise minus those that fall: Mann-Kendall's S
  // The probability that the values in an arbitrary order have as many rises or falls (two-sided;
  // pairs of equal values count as neither). Exact up to 40 points, the normal approximation with
  // continuity correction above.
  double p = 1;
  double slope = 0;  // the median of the slopes of all pairs (Theil-Sen); 0: no pairs
  // Contains the slope with a probability of at least 95 %, whatever the distribution of the
  // deviations is (Sen's interval). nullopt: fewer than 5 points.
  std::optional<double> low{}, high{};
  friend bool operator==(const TrendTest&, const TrendTest&) = default;
};

// `x` is strictly ascending and as long as `y`.
TrendTest trend_of(std::span<const double> x, std::span<const double> y);

}  // namespace tt
