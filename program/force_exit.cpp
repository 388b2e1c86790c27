#include "program/force_exit.h"

#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace tt {
namespace {

std::atomic<std::int64_t> first_ns = 0;
static_assert(decltype(first_ns)::is_always_lock_free);

std::int64_t now_ns() {  // clock_gettime() is async-signal-safe
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec * std::int64_t{1'000'000'000}) + now.tv_nsec;
}

}  // namespace

void record_first_signal() { first_ns = now_ns(); }

void force_exit(int number) {
  if (now_ns() - first_ns < std::chrono::nanoseconds(kSignalDebounce).count()) return;
  signal(number, SIG_DFL);
  raise(number);  // blocked until the handler returns
}

}  // namespace tt
