#include "tracer/probe/op_clock.h"

#include <cmath>
#include <ctime>
#include <fstream>
#include <string>

namespace tt {

namespace {

constexpr std::int64_t kTrustedNs = 1'000'000;  // between two pairs
constexpr std::int64_t kPacedNs = 10'000'000;   // a pair is read within some 50 ns
constexpr double kSlewed = 0.002;               // the kernel slews its clock by 0.0005 at most

std::int64_t steady_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// The kernel has watched it: it runs at one pace, on all processors alike.
bool kernel_trusts_counter() {
#if defined(__x86_64__)
  std::string source;
  std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource") >> source;
  return source == "tsc";
#else
  return false;
#endif
}

}  // namespace

OpClock::OpClock() : counter_keeps_time_(kernel_trusts_counter()) {
  last_pair_ = paced_from_ = pair();
  told_ = last_pair_.ns;
}

// The quickest of three: between the two readings of the others something else ran.
OpClock::Pair OpClock::pair() {
  Pair best;
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

std::int64_t OpClock::read_both() {
  if (!counter_keeps_time_) return told_ = std::max(told_, steady_ns());
  last_pair_ = pair();
  if (const auto elapsed = last_pair_.ns - paced_from_.ns; elapsed >= kPacedNs) {
    const double pace =
        static_cast<double>(elapsed) / static_cast<double>(last_pair_.ticks - paced_from_.ticks);
    const double before = std::ldexp(static_cast<double>(ns_per_tick_), -32);
    ns_per_tick_ = static_cast<std::uint64_t>(std::ldexp(pace, 32));
    // Not after a suspend or a move to another machine: it is measured once more.
    const bool steady = std::abs(pace - before) <= kSlewed * pace;
    trusted_ticks_ = steady ? static_cast<std::uint64_t>(kTrustedNs / pace) : 0;
    paced_from_ = last_pair_;
  }
  return tell(counter() - last_pair_.ticks);
}

}  // namespace tt
