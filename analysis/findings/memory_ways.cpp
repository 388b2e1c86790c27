#include "analysis/findings/memory_ways.h"

#include <algorithm>

namespace tt {

namespace {

// Runs of one way differ by more than this.
constexpr double kAsFast = 0.02;

}  // namespace

WaySpeed way_speed(double rate, double plain) {
  if (rate <= 0 || plain <= 0) return WaySpeed::Unknown;
  if (rate < (1 - kAsFast) * plain) return WaySpeed::Slower;
  return rate > (1 + kAsFast) * plain ? WaySpeed::Faster : WaySpeed::AsFast;
}

std::size_t fastest_way(std::span<const double> rates) {
  const double best = std::ranges::max(rates);
  const auto last =
      std::ranges::find_last_if(rates, [&](double rate) { return rate >= (1 - kAsFast) * best; });
  return static_cast<std::size_t>(last.begin() - rates.begin());
}

bool is_limited_by_computing(double low, double high) {
  constexpr double kEqual = 0.01;
  return high > 0 && high - low < kEqual * high;
}

bool is_routing_uniform(double hits, double uniform_hits) {
  constexpr double kClearlyMore = 1.1;
  return hits < kClearlyMore * uniform_hits;
}

}  // namespace tt
