// Tests wait for conditions, not for times. A sleep is left only where time itself is tested
// (a timeout, a rate, a random moment); a comment there says why.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdio>
#include <source_location>
#include <thread>

#include "tests/support/fair_clock.h"

namespace tt::test {

// Polls `condition` until it is true. Returns false if that takes longer than `timeout`, after
// printing the line of the caller. The timeout is one of FairClock: it does not pass while other
// programs have the processors. The default one is long because it only delays failures. The pause
// between two polls grows with the time waited, up to `max_pause`. Does not need gtest, so that
// child processes can use it.
template <std::predicate Condition>
[[nodiscard]] bool wait_until(Condition condition,
                              std::chrono::milliseconds timeout = std::chrono::seconds(60),
                              std::chrono::microseconds max_pause = std::chrono::milliseconds(20),
                              std::source_location caller = std::source_location::current()) {
  using std::chrono::microseconds;
  const auto began = FairClock::now();
  while (!condition()) {
    const auto waited = std::chrono::duration_cast<microseconds>(FairClock::now() - began);
    if (waited > timeout) {
      std::fprintf(stderr, "%s:%u: the condition is still false after %lld ms\n",
                   caller.file_name(), static_cast<unsigned>(caller.line()),
                   static_cast<long long>(timeout.count()));
      return false;
    }
    std::this_thread::sleep_for(std::clamp(waited / 8, microseconds(20), max_pause));
  }
  return true;
}

}  // namespace tt::test
