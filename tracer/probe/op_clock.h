// A fast clock with steady_clock's epoch, for timestamps at the end of each op.
//
// If the kernel uses the TSC as clocksource (x86-64), the TSC is read directly: half the cost
// of steady_clock, which would be the largest part of the cost of recording an op. TSC and
// steady_clock are read together once a millisecond, so that times stay within a microsecond
// of steady_clock. Times never decrease. On other systems it is steady_clock. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace tt {

class OpClock {
 public:
  OpClock();

  std::int64_t ns() {  // since steady_clock's epoch
    const std::uint64_t ticks = counter() - last_sample_.ticks;
    if (ticks >= max_ticks_) [[unlikely]]
      return resync();
    return to_ns(ticks);
  }

 private:
  struct Sample {
    std::uint64_t ticks = 0;
    std::int64_t ns = 0;
  };

  static std::uint64_t counter() {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
  }
  std::int64_t to_ns(std::uint64_t ticks) {
    const auto since = static_cast<std::int64_t>((ticks * ns_per_tick_) >> 32U);
    return last_ns_ = std::max(last_ns_, last_sample_.ns + since);
  }
  static Sample take_sample();
  std::int64_t resync();

  Sample last_sample_;
  std::uint64_t max_ticks_ = 0;    // since last_sample_; 0 while the counter's rate is unknown
  std::uint64_t ns_per_tick_ = 0;  // in 2^-32 ns
  std::int64_t last_ns_ = 0;
  Sample rate_start_;  // start of the interval for measuring the rate
  const bool use_counter_;
};

}  // namespace tt
