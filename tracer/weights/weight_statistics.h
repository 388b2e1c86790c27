// Statistics of the values of a tensor, in one pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tt {

// Of finite values. Without one, all figures are 0.
struct WeightStatistics {
  std::uint64_t count = 0;
  std::uint64_t zeros = 0;
  std::uint64_t not_finite = 0;  // NaN and infinity; not in `count`
  // Values that are larger than kOutlier times the root mean square of their row.
  std::uint64_t outliers = 0;
  float min = 0, max = 0;
  double mean = 0;
  double rms = 0;  // root mean square
  double std = 0;  // standard deviation
  static constexpr float kOutlier = 6;
  // Of a row: what is beyond it is an outlier.
  double outlier_limit() const { return kOutlier * rms; }
};

class WeightSum {
 public:
  void add(std::span<const float> row);
  // A part of a row; outliers are values beyond `limit`.
  void add_part(std::span<const float> part, double limit);
  WeightStatistics result() const;

 private:
  void add_carefully(std::span<const float> row);
  std::uint64_t count_ = 0, zeros_ = 0, not_finite_ = 0, outliers_ = 0;
  double sum_ = 0, squares_ = 0;
  float min_ = 0, max_ = 0;
};

// Counts of values in classes whose width is 1/16 of their power of two, of each sign: quantiles
// and histograms with any number of bins come from it.
class WeightHistogram {
 public:
  void add(std::span<const float> values);
  std::uint64_t count() const;
  // The q-quantile of the values, q from 0 to 1, with a relative error of at most 1/16;
  // exact for q = 0 and 1. 0: no values.
  double quantile(double q) const;
  struct Bin {
    double from = 0, to = 0;
    double count = 0;  // a class that several bins share is divided
  };
  // `count` bins of equal width from `from` to `to`; values outside are counted in the first and
  // last.
  std::vector<Bin> bins(double from, double to, std::size_t count) const;

 private:
  static constexpr unsigned kShift = 19;  // keeps sign, exponent and 4 bits of the mantissa
  std::array<std::uint64_t, (1U << 13)> counts_{};
  float min_ = 0, max_ = 0;  // of finite values, if there are any
  bool any_ = false;
};

}  // namespace tt
