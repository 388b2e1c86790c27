#include "analysis/speed/set_verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <numeric>

#include "analysis/common/median.h"

namespace tt {

namespace {

constexpr double kInterval = 0.95;
constexpr std::size_t kMaxExact = 40;

// Twice the rank of each value, the first is rank 1; equal values share the mean of their ranks,
// which twice is a whole number.
std::vector<std::uint32_t> double_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<std::uint32_t> ranks(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i)
      ranks[order[i]] = static_cast<std::uint32_t>(begin + 1 + end);
  }
  return ranks;
}

// The share of all choices of `count` ranks whose sum is at least as far from the mean as `sum`.
double exact_p(const std::vector<std::uint32_t>& ranks, std::size_t count, std::uint32_t sum) {
  const std::uint32_t all = std::reduce(ranks.begin(), ranks.end());
  // choices[n][s]: of the ranks so far, how many choices of n have the sum s.
  std::vector<std::vector<double>> choices(count + 1, std::vector<double>(all + 1, 0.0));
  choices[0][0] = 1;
  for (const std::uint32_t rank : ranks)
    for (std::size_t n = count; n-- > 0;)
      for (std::uint32_t s = all + 1 - rank; s-- > 0;) choices[n + 1][s + rank] += choices[n][s];
  // Sums times the number of ranks, so that the mean is whole, too.
  const auto distance = [&](std::uint32_t of) {
    return std::abs(static_cast<std::int64_t>(of) * static_cast<std::int64_t>(ranks.size()) -
                    static_cast<std::int64_t>(all) * static_cast<std::int64_t>(count));
  };
  double as_far = 0, any = 0;
  for (std::uint32_t s = 0; s <= all; ++s) {
    any += choices[count][s];
    if (distance(s) >= distance(sum)) as_far += choices[count][s];
  }
  return as_far / any;
}

double normal_p(const std::vector<std::uint32_t>& ranks, std::size_t count, std::uint32_t sum) {
  const auto n = static_cast<double>(ranks.size()), of = static_cast<double>(count);
  double ties = 0;
  std::map<std::uint32_t, double> equal;
  for (const std::uint32_t rank : ranks) ++equal[rank];
  for (const auto& [rank, t] : equal) ties += t * t * t - t;
  const double variance = of * (n - of) / 12 * (n + 1 - ties / (n * (n - 1)));
  const double off = std::abs(sum / 2.0 - of * (n + 1) / 2) - 0.5;
  if (variance <= 0 || off <= 0) return 1;
  return std::erfc(off / std::sqrt(variance) / std::numbers::sqrt2);
}

}  // namespace

SampleMedian median_of(std::vector<double> samples) {
  SampleMedian result{.samples = samples.size()};
  if (samples.empty()) return result;
  std::ranges::sort(samples);
  const std::size_t n = samples.size();
  result.median = median_of_sorted(samples);
  // The k-th least and the k-th greatest sample enclose the median unless fewer than k samples are
  // on one side of it: twice the probability of fewer than k heads of n coins.
  double probability = std::pow(0.5, static_cast<double>(n)), outside = 0;
  std::size_t k = 0;
  for (; k < n / 2 && 2 * (outside + probability) <= 1 - kInterval; ++k) {
    outside += probability;
    probability *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  if (k > 0) {
    result.low = samples[k - 1];
    result.high = samples[n - k];
  }
  return result;
}

double rank_sum_p(std::span<const double> left, std::span<const double> right) {
  if (left.empty() || right.empty()) return 1;
  std::vector<double> values(left.begin(), left.end());
  values.insert(values.end(), right.begin(), right.end());
  const std::vector<std::uint32_t> ranks = double_ranks(values);
  const auto end = ranks.begin() + static_cast<std::ptrdiff_t>(left.size());
  const std::uint32_t sum = std::reduce(ranks.begin(), end);
  return values.size() <= kMaxExact ? exact_p(ranks, left.size(), sum)
                                    : normal_p(ranks, left.size(), sum);
}

std::vector<bool> differ(std::span<const double> p, double q) {
  std::vector<double> sorted(p.begin(), p.end());
  std::ranges::sort(sorted);
  double limit = -1;
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] <= q * static_cast<double>(i + 1) / static_cast<double>(sorted.size()))
      limit = sorted[i];
  std::vector<bool> different;
  for (const double of : p) different.push_back(of <= limit);
  return different;
}

}  // namespace tt
