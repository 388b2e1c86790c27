#include "tracer/weights/weight_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tt {

namespace {

constexpr std::size_t kLanes = 16;  // independent sums, so that the compiler can vectorize them
// Of values that are added as floats: the error of a sum stays below 1e-6 of it.
constexpr std::size_t kFew = 1024;

struct PieceSums {
  double sum = 0, squares = 0;
  float min = 0, max = 0;
  std::uint64_t zeros = 0;
};

// A version for processors with AVX2 is chosen at run time: it decides the speed of reading a
// model. Not under ThreadSanitizer, whose runtime is called by the choosing function before it is
// loaded.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define TT_CLONES target_clones("arch=x86-64-v3", "default"),
#else
#define TT_CLONES
#endif
__attribute__((TT_CLONES optimize("O3"))) PieceSums sums_of(const float* values,
                                                            std::size_t count) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  PieceSums out{.min = kInfinity, .max = -kInfinity};
  for (std::size_t at = 0; at < count; at += kFew) {
    const float* const part = values + at;
    const std::size_t size = std::min(kFew, count - at);
    std::array<float, kLanes> sums{}, squares{}, mins{}, maxs{};
    std::array<std::int32_t, kLanes> zeros{};
    mins.fill(out.min);
    maxs.fill(out.max);
    const auto take = [&](std::size_t lane, float value) {
      sums[lane] += value;
      squares[lane] += value * value;
      mins[lane] = value < mins[lane] ? value : mins[lane];
      maxs[lane] = value > maxs[lane] ? value : maxs[lane];
      zeros[lane] += value == 0 ? 1 : 0;
    };
    std::size_t i = 0;
    for (; i + kLanes <= size; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) take(lane, part[i + lane]);
    for (; i < size; ++i) take(i % kLanes, part[i]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      out.sum += sums[lane];
      out.squares += squares[lane];
      out.min = std::min(out.min, mins[lane]);
      out.max = std::max(out.max, maxs[lane]);
      out.zeros += static_cast<std::uint64_t>(zeros[lane]);
    }
  }
  return out;
}

}  // namespace

void WeightSum::add(std::span<const float> row) {
  const PieceSums sums = sums_of(row.data(), row.size());
  const double squares = sums.squares;
  // A NaN or an infinity is in the sum of squares. So is a value whose square is too large.
  if (!std::isfinite(squares)) return add_carefully(row);
  if (row.empty()) return;
  min_ = count_ == 0 ? sums.min : std::min(min_, sums.min);
  max_ = count_ == 0 ? sums.max : std::max(max_, sums.max);
  count_ += row.size();
  zeros_ += sums.zeros;
  sum_ += sums.sum;
  squares_ += squares;
  const auto limit = static_cast<float>(WeightStatistics::kOutlier *
                                        std::sqrt(squares / static_cast<double>(row.size())));
  if (sums.max > limit || sums.min < -limit) {
    for (const float value : row) outliers_ += std::abs(value) > limit ? 1U : 0U;
  }
}

void WeightSum::add_carefully(std::span<const float> row) {
  double squares = 0;
  std::uint64_t count = 0;
  for (const float value : row) {
    if (!std::isfinite(value)) continue;
    ++count;
    squares += static_cast<double>(value) * value;
  }
  add_part(row, WeightStatistics::kOutlier *
                    std::sqrt(squares / static_cast<double>(std::max<std::uint64_t>(count, 1))));
}

void WeightSum::add_part(std::span<const float> part, double limit) {
  for (const float value : part) {
    if (!std::isfinite(value)) {
      ++not_finite_;
      continue;
    }
    min_ = count_ == 0 ? value : std::min(min_, value);
    max_ = count_ == 0 ? value : std::max(max_, value);
    ++count_;
    zeros_ += value == 0 ? 1 : 0;
    sum_ += value;
    squares_ += static_cast<double>(value) * value;
    outliers_ += std::abs(static_cast<double>(value)) > limit ? 1U : 0U;
  }
}

WeightStatistics WeightSum::result() const {
  WeightStatistics out{.count = count_,
                       .zeros = zeros_,
                       .not_finite = not_finite_,
                       .outliers = outliers_,
                       .min = min_,
                       .max = max_};
  if (count_ == 0) return out;
  const auto n = static_cast<double>(count_);
  out.mean = sum_ / n;
  out.rms = std::sqrt(squares_ / n);
  out.std = std::sqrt(std::max(0.0, squares_ / n - out.mean * out.mean));
  return out;
}

// The 13 upper bits of a float: the sign, then larger magnitudes have larger numbers. NaN and
// infinity have the last classes of each sign.
void WeightHistogram::add(std::span<const float> values) {
  for (const float value : values) {
    ++counts_[std::bit_cast<std::uint32_t>(value) >> kShift];
    if (!std::isfinite(value)) continue;
    min_ = any_ ? std::min(min_, value) : value;
    max_ = any_ ? std::max(max_, value) : value;
    any_ = true;
  }
}

namespace {

constexpr std::size_t kOfSign = 1U << 12;   // classes per sign
constexpr std::size_t kFinite = 255U << 4;  // of them: before infinity

// The least magnitude of class `i` of a sign.
double magnitude(std::size_t i) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(i) << 19U);
}

// Calls visit(from, to, count) for classes with values, from the least value to the largest.
template <class Visit>
void for_each_class(const auto& counts, const Visit& visit) {
  for (std::size_t i = kFinite; i-- > 0;)
    if (counts[kOfSign + i] > 0) visit(-magnitude(i + 1), -magnitude(i), counts[kOfSign + i]);
  for (std::size_t i = 0; i < kFinite; ++i)
    if (counts[i] > 0) visit(magnitude(i), magnitude(i + 1), counts[i]);
}

}  // namespace

std::uint64_t WeightHistogram::count() const {
  std::uint64_t all = 0;
  for_each_class(counts_, [&](double, double, std::uint64_t count) { all += count; });
  return all;
}

double WeightHistogram::quantile(double q) const {
  const double wanted = q * static_cast<double>(count());
  double before = 0, value = 0;
  bool found = false;
  for_each_class(counts_, [&](double from, double to, std::uint64_t count) {
    if (found) return;
    const auto n = static_cast<double>(count);
    value = from + (to - from) * std::clamp((wanted - before) / n, 0.0, 1.0);
    before += n;
    found = before >= wanted;
  });
  // Zeros are in a class with the smallest numbers, of which weights have none.
  if (std::abs(value) < static_cast<double>(std::numeric_limits<float>::min())) value = 0;
  return any_ ? std::clamp<double>(value, min_, max_) : 0;
}

std::vector<WeightHistogram::Bin> WeightHistogram::bins(double from, double to,
                                                        std::size_t count) const {
  std::vector<Bin> out(std::max<std::size_t>(count, 1));
  const auto n = static_cast<double>(out.size());
  const double width = to > from ? (to - from) / n : 1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].from = from + width * static_cast<double>(i);
    out[i].to = from + width * static_cast<double>(i + 1);
  }
  const auto bin_of = [&](double value) {
    return static_cast<std::size_t>(std::clamp(std::floor((value - from) / width), 0.0, n - 1));
  };
  for_each_class(counts_, [&](double low, double high, std::uint64_t values) {
    const std::size_t first = bin_of(low), last = bin_of(high);
    const auto all = static_cast<double>(values);
    if (first == last) {
      out[first].count += all;
      return;
    }
    for (std::size_t i = first; i <= last; ++i) {
      const double begin = i == first ? low : out[i].from, end = i == last ? high : out[i].to;
      out[i].count += all * (end - begin) / (high - low);
    }
  });
  return out;
}

}  // namespace tt
