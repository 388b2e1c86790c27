// Whether two sets of independent samples, such as a figure of each of several runs, differ by more
// than runs of one kind differ among themselves. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace tt {

struct SampleMedian {
  std::size_t samples = 0;
  double median = 0;  // of an even number of samples: the mean of the two in the middle
  // Contains the median of the distribution that the samples are from, with a probability of at
  // least 95 %, whatever this distribution is: two of the samples, by their ranks. nullopt: fewer
  // than 6 samples.
  std::optional<double> low{}, high{};
  friend bool operator==(const SampleMedian&, const SampleMedian&) = default;
};
SampleMedian median_of(std::vector<double> samples);

// The probability that samples of one distribution, divided by chance into two sets of these sizes,
// are at least as far apart (Mann-Whitney, two-sided; equal values have their mean rank). Exact up
// to 40 samples, the normal approximation with continuity correction above. 1 if a set is empty.
double rank_sum_p(std::span<const double> left, std::span<const double> right);

// Which of many comparisons to call different, so that on average at most the share `q` of those
// called different are not (Benjamini-Hochberg). In the order of `p`.
std::vector<bool> differ(std::span<const double> p, double q = 0.05);

}  // namespace tt
