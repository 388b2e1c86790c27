// Whether two sets of times differ by more than noise. The rule, and why it is this one:
// docs/bench-model.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tt {

// Median and spread. Quantiles: tracer/format/model/quantile.h.
struct SampleSpread {
  double median = 0, p5 = 0, p95 = 0, mean = 0;
  double stddev = 0;  // of the sample (n - 1)
};
SampleSpread sample_spread(std::span<const double> samples);  // no samples: all 0

enum class SpeedVerdict : std::uint8_t { Equal, Faster, Slower };
const char* to_text(SpeedVerdict);  // "no significant difference", "faster", "slower"

// How long `after` takes relative to `before`.
struct SpeedChange {
  double ratio = 1;  // 1.05: 5 % slower
  // The interval that contains the ratio with the confidence; nullopt: too few samples.
  std::optional<double> low, high;
  double noise = 0;  // the noise floor that it was judged by: 0.01 is 1 %
  // Not Equal if the interval does not contain 1 and the ratio differs from 1 by more than the
  // noise floor.
  SpeedVerdict verdict = SpeedVerdict::Equal;
};
inline constexpr double kConfidence = 0.99;

// The time of what other programs, which only add time, hardly disturbed: the geometric mean of the
// kFastest least samples. No samples: 0.
double fastest(std::span<const double> samples);
inline constexpr std::size_t kFastest = 6;
// Independent samples, such as those of two runs of a program. Ratio: that of fastest(); interval:
// how it varies if the samples of each side are drawn again, with repetition (bootstrap), widened
// by 1 + 2/n. It needs kLeastSamples on each side. The same samples give the same interval.
SpeedChange compare_samples(std::span<const double> before, std::span<const double> after,
                            double noise, double confidence = kConfidence);
inline constexpr std::size_t kLeastSamples = 5;
// The same for the medians (nearest rank) of samples that nothing is known to have disturbed.
SpeedChange compare_medians(std::span<const double> before, std::span<const double> after,
                            double noise, double confidence = kConfidence);
// Samples that were taken in pairs, one after the other, so that both saw the same machine. Ratio:
// median of the means of all two pairs; interval: exact distribution of the signed ranks
// (Wilcoxon). The number of samples is equal.
SpeedChange compare_pairs(std::span<const double> before, std::span<const double> after,
                          double noise);

// How far two equal programs are apart, at least kLeastNoise. Measured in pairs: half of the pairs
// differ by more. Of the fastest: the difference of fastest().
double noise_floor(std::span<const double> first, std::span<const double> second);
double noise_floor_of_fastest(std::span<const double> first, std::span<const double> second);
// Smaller differences of equal programs are normal even on a quiet machine.
inline constexpr double kLeastNoise = 0.005;

}  // namespace tt
