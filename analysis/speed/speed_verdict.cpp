#include "analysis/speed/speed_verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "analysis/common/quantile.h"

namespace tt {

namespace {

// With more, the normal approximation is as good and the exact distribution takes too long.
constexpr std::size_t kMaxExactPairs = 2500, kMaxExactSigned = 200;

// The number of values to drop at each end of `count` sorted ones, so that the rest is the
// interval; 0: too few samples, no interval. The probability that the rank statistic is at most k
// is the sum of the first k + 1 probabilities.
std::size_t values_outside(std::span<const double> probabilities, double confidence) {
  double sum = 0;
  std::size_t outside = 0;
  for (const double probability : probabilities) {
    sum += probability;
    if (sum > (1 - confidence) / 2) break;
    ++outside;
  }
  return outside;
}

std::size_t values_outside_normal(double mean, double variance, double confidence) {
  double low = 0, high = 40;  // the normal quantile, by bisection
  for (int i = 0; i < 60; ++i) {
    const double z = (low + high) / 2;
    (std::erf(z / std::numbers::sqrt2) < confidence ? low : high) = z;
  }
  const double k = std::floor(mean - low * std::sqrt(variance));
  return k < 1 ? 0 : static_cast<std::size_t>(k);
}

// Of the Mann-Whitney statistic of `n` and `m` samples with the same distribution: the largest of
// all samples belongs to the first ones with probability n / (n + m), and then exceeds m others.
std::vector<double> rank_sum_probabilities(std::size_t n, std::size_t m) {
  std::vector<std::vector<double>> row(m + 1);  // for i samples, by j
  for (auto& of : row) of = {1.0};              // i = 0
  for (std::size_t i = 1; i <= n; ++i) {
    std::vector<std::vector<double>> next(m + 1);
    next[0] = {1.0};
    for (std::size_t j = 1; j <= m; ++j) {
      const double share = static_cast<double>(i) / static_cast<double>(i + j);
      next[j].assign(i * j + 1, 0.0);
      for (std::size_t u = 0; u < row[j].size(); ++u) next[j][u + j] += share * row[j][u];
      for (std::size_t u = 0; u < next[j - 1].size(); ++u)
        next[j][u] += (1 - share) * next[j - 1][u];
    }
    row = std::move(next);
  }
  return std::move(row[m]);
}

// Of the Wilcoxon statistic of `n` differences around 0: each rank counts with probability 1/2.
std::vector<double> signed_rank_probabilities(std::size_t n) {
  std::vector<double> sums = {1.0};
  for (std::size_t rank = 1; rank <= n; ++rank) {
    std::vector<double> next(sums.size() + rank, 0.0);
    for (std::size_t sum = 0; sum < sums.size(); ++sum) {
      next[sum] += sums[sum] / 2;
      next[sum + rank] += sums[sum] / 2;
    }
    sums = std::move(next);
  }
  return sums;
}

// `ratios` are logarithms, of which `outside` at each end are outside of the interval.
SpeedChange judge(std::vector<double> ratios, std::size_t outside, double noise) {
  SpeedChange change;
  change.noise = noise;
  if (ratios.empty()) return change;
  std::ranges::sort(ratios);
  const std::size_t n = ratios.size();
  change.ratio = std::exp((ratios[(n - 1) / 2] + ratios[n / 2]) / 2);
  outside = std::min(outside, (n + 1) / 2);
  if (outside == 0) return change;
  change.low = std::exp(ratios[outside - 1]);
  change.high = std::exp(ratios[n - outside]);
  if (*change.low > 1 && change.ratio > 1 + noise) change.verdict = SpeedVerdict::Slower;
  if (*change.high < 1 && change.ratio < 1 / (1 + noise)) change.verdict = SpeedVerdict::Faster;
  return change;
}

}  // namespace

const char* to_text(SpeedVerdict verdict) {
  static constexpr std::array kNames = {"not to be told apart", "faster", "slower"};
  const auto i = static_cast<std::size_t>(std::to_underlying(verdict));
  return i < kNames.size() ? kNames[i] : "?";
}

SampleSpread sample_spread(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  const auto at = [&](double q) { return quantile<double>(sorted, q).value_or(0); };
  const auto n = static_cast<double>(sorted.size());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  double squares = 0;
  for (const double value : sorted) squares += (value - mean) * (value - mean);
  return {.median = at(0.5),
          .p5 = at(0.05),
          .p95 = at(0.95),
          .mean = mean,
          .stddev = sorted.size() < 2 ? 0 : std::sqrt(squares / (n - 1))};
}

SpeedChange compare_samples(std::span<const double> before, std::span<const double> after,
                            double noise, double confidence) {
  std::vector<double> ratios;
  ratios.reserve(before.size() * after.size());
  for (const double a : before)
    for (const double b : after) ratios.push_back(std::log(b / a));
  const auto n = static_cast<double>(before.size()), m = static_cast<double>(after.size());
  const std::size_t outside =
      ratios.size() > kMaxExactPairs
          ? values_outside_normal(n * m / 2, n * m * (n + m + 1) / 12, confidence)
          : values_outside(rank_sum_probabilities(before.size(), after.size()), confidence);
  return judge(std::move(ratios), outside, noise);
}

SpeedChange compare_pairs(std::span<const double> before, std::span<const double> after,
                          double noise) {
  const std::size_t pairs = std::min(before.size(), after.size());
  std::vector<double> single;
  for (std::size_t i = 0; i < pairs; ++i) single.push_back(std::log(after[i] / before[i]));
  std::vector<double> means;
  means.reserve(pairs * (pairs + 1) / 2);
  for (std::size_t i = 0; i < pairs; ++i)
    for (std::size_t j = i; j < pairs; ++j) means.push_back((single[i] + single[j]) / 2);
  const auto n = static_cast<double>(pairs);
  const std::size_t outside =
      pairs > kMaxExactSigned
          ? values_outside_normal(n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24, kConfidence)
          : values_outside(signed_rank_probabilities(pairs), kConfidence);
  return judge(std::move(means), outside, noise);
}

double noise_floor(std::span<const double> first, std::span<const double> second) {
  std::vector<double> distances;
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    const double ratio = second[i] / first[i];
    distances.push_back(std::max(ratio, 1 / ratio) - 1);
  }
  std::ranges::sort(distances);
  return std::max(kLeastNoise, quantile<double>(distances, 0.5).value_or(0));
}

}  // namespace tt
