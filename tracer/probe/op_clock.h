// steady_clock's time, for what happens every few microseconds: the end of an op.
//
// Where the kernel itself keeps time by the processor's counter (x86-64, clocksource
// tsc), the counter is read without the kernel's part: half the price of steady_clock,
// which otherwise is more than everything else that recording an op costs. Both are
// read together once a millisecond, so that times stay comparable with everybody
// else's: within a microsecond of steady_clock's, and they never go back. Elsewhere it
// is steady_clock. One thread.
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
    const std::uint64_t ticks = counter() - last_pair_.ticks;
    if (ticks >= trusted_ticks_) [[unlikely]]
      return read_both();
    return tell(ticks);
  }

 private:
  struct Pair {
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
  std::int64_t tell(std::uint64_t ticks) {
    const auto since = static_cast<std::int64_t>((ticks * ns_per_tick_) >> 32U);
    return told_ = std::max(told_, last_pair_.ns + since);
  }
  static Pair pair();
  std::int64_t read_both();

  Pair last_pair_;
  std::uint64_t trusted_ticks_ = 0;  // since last_pair_; 0 while the counter's pace is not known
  std::uint64_t ns_per_tick_ = 0;    // in 2^-32 ns
  std::int64_t told_ = 0;
  Pair paced_from_;  // where the pace is measured from
  const bool counter_keeps_time_;
};

}  // namespace tt
