#include "tracer/probe/op_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace tt::test {
namespace {

using namespace std::chrono_literals;

std::int64_t steady_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The largest deviation of a reading from the two readings of steady_clock around it.
std::int64_t max_deviation(OpClock& clock, std::chrono::nanoseconds during) {
  std::int64_t largest = 0;
  std::int64_t last = 0;
  const std::int64_t until = steady_ns() + during.count();
  for (std::int64_t after = 0; after < until;) {
    const std::int64_t before = steady_ns();
    const std::int64_t reading = clock.ns();
    after = steady_ns();
    EXPECT_GE(reading, last) << "the clock went back";
    last = reading;
    largest = std::max({largest, before - reading, reading - after});
  }
  return largest;
}

// When new, during its calibration, and long after it.
TEST(OpClock, MatchesSteadyClock) {
  OpClock clock;
  EXPECT_LE(max_deviation(clock, 300ms), 1'000);
}

TEST(OpClock, MatchesSteadyClockAfterPause) {
  OpClock clock;
  max_deviation(clock, 30ms);
  for (const auto pause : {1ms, 20ms, 200ms}) {
    std::this_thread::sleep_for(pause);  // the clock runs without being read
    EXPECT_LE(max_deviation(clock, 5ms), 1'000);
  }
}

}  // namespace
}  // namespace tt::test
