#include "tracer/probe/op_clock.h"

#include <cmath>
#include <ctime>
#include <fstream>
#include <string>

namespace tt {

namespace {

constexpr std::int64_t kMaxSampleAgeNs = 1'000'000;  // maximum time between two pairs
constexpr std::int64_t kMinRateIntervalNs =
    10'000'000;                           // to measure the rate; a pair is accurate to 50 ns
constexpr double kMaxRateChange = 0.002;  // the kernel slews its clock by 0.0005 at most

std::int64_t steady_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Whether the kernel has verified that the TSC is constant and synchronized between CPUs.
bool kernel_uses_counter() {
#if defined(__x86_64__)
  std::string source;
  std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource") >> source;
  return source == "tsc";
#else
  return false;
#endif
}

}  // namespace

OpClock::OpClock() : use_counter_(kernel_uses_counter()) {
  last_sample_ = rate_start_ = take_sample();
  last_ns_ = last_sample_.ns;
}

// Takes the fastest of three readings: the others may have been interrupted.
OpClock::Sample OpClock::take_sample() {
  Sample best;
  std::uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = counter();
    const std::int64_t ns = steady_ns();
    const std::uint64_t took = counter() - before;
    if (took >= shortest) continue;
    shortest = took;
    best = {.ticks = before + took / 2, .ns = ns};
  }
  return best;
}

std::int64_t OpClock::resync() {
  if (!use_counter_) return last_ns_ = std::max(last_ns_, steady_ns());
  last_sample_ = take_sample();
  if (const auto elapsed = last_sample_.ns - rate_start_.ns; elapsed >= kMinRateIntervalNs) {
    const double rate =
        static_cast<double>(elapsed) / static_cast<double>(last_sample_.ticks - rate_start_.ticks);
    const double before = std::ldexp(static_cast<double>(ns_per_tick_), -32);
    ns_per_tick_ = static_cast<std::uint64_t>(std::ldexp(rate, 32));
    // The rate changes after a suspend or a migration to another machine: measure again.
    const bool steady = std::abs(rate - before) <= kMaxRateChange * rate;
    max_ticks_ = steady ? static_cast<std::uint64_t>(kMaxSampleAgeNs / rate) : 0;
    rate_start_ = last_sample_;
  }
  return to_ns(counter() - last_sample_.ticks);
}

}  // namespace tt
