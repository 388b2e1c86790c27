#include "analysis/speed/speed_verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tracer/format/model/quantile.h"

namespace tt {

namespace {

// With more, the normal approximation is as good and the exact distribution takes too long.
constexpr std::size_t kMaxExactSigned = 200;

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

// The mean of the kFastest least. Reorders `logarithms`, which are not empty.
double fastest_mean(std::vector<double>& logarithms) {
  const std::size_t count = std::min(logarithms.size(), kFastest);
  const auto end = logarithms.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(logarithms.begin(), end - 1, logarithms.end());
  return std::accumulate(logarithms.begin(), end, 0.0) / static_cast<double>(count);
}

// Nearest rank, as quantile(). Reorders `logarithms`, which are not empty.
double median(std::vector<double>& logarithms) {
  const auto middle = logarithms.begin() + static_cast<std::ptrdiff_t>((logarithms.size() - 1) / 2);
  std::nth_element(logarithms.begin(), middle, logarithms.end());
  return *middle;
}

std::vector<double> logarithms_of(std::span<const double> samples) {
  std::vector<double> logarithms;
  logarithms.reserve(samples.size());
  for (const double sample : samples) logarithms.push_back(std::log(sample));
  return logarithms;
}

// Ratio and interval as logarithms.
SpeedChange judge(double ratio, std::optional<std::pair<double, double>> interval, double noise) {
  SpeedChange change{.ratio = std::exp(ratio), .low = {}, .high = {}, .noise = noise};
  if (!interval) return change;
  change.low = std::exp(interval->first);
  change.high = std::exp(interval->second);
  if (*change.low > 1 && change.ratio > 1 + noise) change.verdict = SpeedVerdict::Slower;
  if (*change.high < 1 && change.ratio < 1 / (1 + noise)) change.verdict = SpeedVerdict::Faster;
  return change;
}

// `figure` is of the logarithms of samples: fastest_mean() or median().
SpeedChange compare_drawn(double (*figure)(std::vector<double>&), std::span<const double> before,
                          std::span<const double> after, double noise, double confidence) {
  if (before.empty() || after.empty()) return judge(0, {}, noise);
  const std::vector<double> left = logarithms_of(before), right = logarithms_of(after);
  std::vector<double> draw = left;
  const double of_left = figure(draw);
  draw = right;
  const double ratio = figure(draw) - of_left;
  if (std::min(left.size(), right.size()) < kLeastSamples) return judge(ratio, {}, noise);
  constexpr std::size_t kOutside = 10;  // draws at each end
  // At least one between the ends, also with a confidence near 0.
  const std::size_t draws =
      std::max(2 * kOutside + 1, static_cast<std::size_t>(2 * kOutside / (1 - confidence)));
  std::mt19937 random(1);
  const auto draw_from = [&](const std::vector<double>& from) {
    draw.clear();
    // uniform_int_distribution differs between standard libraries.
    for (std::size_t i = 0; i < from.size(); ++i) draw.push_back(from[random() % from.size()]);
    return figure(draw);
  };
  std::vector<double> ratios(draws);
  for (double& value : ratios) {
    const double of_before = draw_from(left);
    value = draw_from(right) - of_before;
  }
  std::ranges::sort(ratios);
  // Few samples vary less than what they are taken from: about as much as Student's t distribution
  // is wider than the normal one.
  const double widened = 1 + 2 / static_cast<double>(std::min(left.size(), right.size()));
  const auto end = [&](double drawn) { return ratio + widened * (drawn - ratio); };
  return judge(ratio, std::pair(end(ratios[kOutside]), end(ratios[draws - 1 - kOutside])), noise);
}

}  // namespace

const char* to_text(SpeedVerdict verdict) {
  static constexpr std::array kNames = {"no significant difference", "faster", "slower"};
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

double fastest(std::span<const double> samples) {
  if (samples.empty()) return 0;
  std::vector<double> logarithms = logarithms_of(samples);
  return std::exp(fastest_mean(logarithms));
}

SpeedChange compare_samples(std::span<const double> before, std::span<const double> after,
                            double noise, double confidence) {
  return compare_drawn(fastest_mean, before, after, noise, confidence);
}

SpeedChange compare_medians(std::span<const double> before, std::span<const double> after,
                            double noise, double confidence) {
  return compare_drawn(median, before, after, noise, confidence);
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
  if (means.empty()) return judge(0, {}, noise);
  std::ranges::sort(means);
  const std::size_t count = means.size(), left_out = std::min(outside, (count + 1) / 2);
  const double ratio = (means[(count - 1) / 2] + means[count / 2]) / 2;
  if (left_out == 0) return judge(ratio, {}, noise);
  return judge(ratio, std::pair(means[left_out - 1], means[count - left_out]), noise);
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

double noise_floor_of_fastest(std::span<const double> first, std::span<const double> second) {
  if (first.empty() || second.empty()) return kLeastNoise;
  const double ratio = fastest(second) / fastest(first);
  return std::max(kLeastNoise, std::max(ratio, 1 / ratio) - 1);
}

}  // namespace tt
