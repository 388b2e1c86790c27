#include "analysis/sets/mann_kendall.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <vector>

#include "analysis/common/median.h"

namespace tt {

namespace {

constexpr double kLevel = 0.05;       // of the interval and of kLeastTrendPoints
constexpr double kNormal = 1.959964;  // its quantile of the normal distribution, two-sided
constexpr std::size_t kMaxExactPoints = 40;

using OrderCounts = std::vector<double>;

// By number of pairs that fall, how many ways there are to put `added` equal values among `before`
// smaller ones: each added value falls to the smaller ones after it. These are the partitions of a
// number into at most `added` parts of at most `before`.
OrderCounts ways_to_insert(std::size_t added, std::size_t before) {
  const std::size_t most = added * before;
  // By number of parts, all of at least 1.
  std::vector<OrderCounts> parts(added + 1, OrderCounts(most + 1, 0.0));
  parts[0][0] = 1;
  for (std::size_t part = 1; part <= before; ++part)
    for (std::size_t n = 1; n <= added; ++n)
      for (std::size_t sum = part; sum <= most; ++sum) parts[n][sum] += parts[n - 1][sum - part];
  OrderCounts ways(most + 1, 0.0);
  for (const OrderCounts& of : parts)
    for (std::size_t sum = 0; sum <= most; ++sum) ways[sum] += of[sum];
  return ways;
}

// By number of pairs that fall, how many of the orders of the values there are. `equal`: how often
// each value occurs.
OrderCounts orders_by_falls(std::span<const std::size_t> equal) {
  OrderCounts counts = {1};
  std::size_t before = 0;
  for (const std::size_t added : equal) {
    const OrderCounts ways = ways_to_insert(added, before);
    OrderCounts more(counts.size() + ways.size() - 1, 0.0);
    for (std::size_t i = 0; i < counts.size(); ++i)
      for (std::size_t j = 0; j < ways.size(); ++j) more[i + j] += counts[i] * ways[j];
    counts = std::move(more);
    before += added;
  }
  return counts;
}

// The share of the orders with at least `distance` more rises than falls, or the other way round.
double exact_trend_p(const OrderCounts& counts, std::int64_t distance) {
  const auto pairs = static_cast<std::int64_t>(counts.size()) - 1;  // of different values
  double as_far = 0, any = 0;
  for (std::int64_t falls = 0; falls <= pairs; ++falls) {
    const double of = counts[static_cast<std::size_t>(falls)];
    any += of;
    if (std::abs(pairs - 2 * falls) >= distance) as_far += of;
  }
  return as_far / any;
}

double deviation_of(std::span<const std::size_t> equal) {
  const auto term = [](double n) { return n * (n - 1) * (2 * n + 5); };
  double points = 0, ties = 0;
  for (const std::size_t of : equal) {
    points += static_cast<double>(of);
    ties += term(static_cast<double>(of));
  }
  return std::sqrt((term(points) - ties) / 18);
}

double normal_trend_p(double deviation, std::int64_t distance) {
  const double off = static_cast<double>(distance) - 1;
  if (deviation <= 0 || off <= 0) return 1;
  return std::erfc(off / deviation / std::numbers::sqrt2);
}

// The smallest number of rises minus falls that is significant with `points` different values.
// nullopt: none is.
std::optional<std::int64_t> significant_rises(std::size_t points) {
  const std::vector<std::size_t> different(points, 1);
  const auto pairs = static_cast<std::int64_t>(points * (points - 1) / 2);
  if (points > kMaxExactPoints) {
    const auto least = static_cast<std::int64_t>(std::ceil(kNormal * deviation_of(different))) + 1;
    return least + (pairs - least) % 2;  // as even or odd as the number of pairs
  }
  const OrderCounts counts = orders_by_falls(different);
  std::optional<std::int64_t> least;
  for (std::int64_t rises = pairs; rises > 0 && exact_trend_p(counts, rises) <= kLevel; rises -= 2)
    least = rises;
  return least;
}

}  // namespace

TrendTest trend_of(std::span<const double> x, std::span<const double> y) {
  TrendTest test{.points = y.size()};
  if (y.size() < 2) return test;
  std::vector<double> slopes;
  slopes.reserve(y.size() * (y.size() - 1) / 2);
  for (std::size_t i = 0; i < y.size(); ++i) {
    for (std::size_t j = i + 1; j < y.size(); ++j) {
      test.rises += (y[j] > y[i]) - (y[j] < y[i]);
      slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
    }
  }
  std::map<double, std::size_t> by_value;
  for (const double value : y) ++by_value[value];
  std::vector<std::size_t> equal;
  for (const auto& [value, times] : by_value) equal.push_back(times);
  test.p = y.size() <= kMaxExactPoints ? exact_trend_p(orders_by_falls(equal), std::abs(test.rises))
                                       : normal_trend_p(deviation_of(equal), std::abs(test.rises));
  std::ranges::sort(slopes);
  test.slope = median_of_sorted(slopes);
  // A slope is in the interval if the points, without it, have no significant trend: of the sorted
  // slopes, as many less than `rises` are above it as below it.
  if (const auto rises = significant_rises(y.size())) {
    const std::size_t outside = (slopes.size() - static_cast<std::size_t>(*rises)) / 2;
    test.low = slopes[outside];
    test.high = slopes[slopes.size() - 1 - outside];
  }
  return test;
}

}  // namespace tt
