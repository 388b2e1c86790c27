#include "tests/fuzz/limits.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#if defined(__SANITIZE_ADDRESS__)
#define TT_MEMORY_IS_COUNTED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TT_MEMORY_IS_COUNTED 1
#endif
#endif
#ifdef TT_MEMORY_IS_COUNTED
#include <sanitizer/allocator_interface.h>
#endif

namespace tt::fuzz {

namespace {

#ifdef TT_FUZZ
constexpr bool kTimed = true;
#else
constexpr bool kTimed = false;
#endif

// Of all threads: time that the machine gave to others does not count.
std::int64_t time_taken_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

#ifdef TT_MEMORY_IS_COUNTED
// What the hooks see: they have no argument of ours.
std::atomic<std::size_t> held_before = 0;  // 0: no input is looked at
std::atomic<unsigned> allocations = 0;
std::atomic<const char*> asked = "";

// Counting is slow, so only what is large, and now and then one that is not.
void on_allocation(const volatile void*, std::size_t bytes) {
  constexpr std::size_t kLarge = 256 << 10;
  constexpr unsigned kOneOf = 4096;
  const std::size_t before = held_before.load(std::memory_order_relaxed);
  if (before == 0) return;
  if (bytes < kLarge && allocations.fetch_add(1, std::memory_order_relaxed) % kOneOf != 0) return;
  const std::size_t held = __sanitizer_get_current_allocated_bytes();
  if (held < before + kMostGrowth) return;
  held_before = 0;
  finding(std::string(asked.load()) + ": more than 256 MB");
}
void on_release(const volatile void*) {}

void begin_counting(const char* what) {
  asked = what;
  static const int installed = __sanitizer_install_malloc_and_free_hooks(on_allocation, on_release);
  if (installed == 0) finding("memory cannot be counted");
  held_before = __sanitizer_get_current_allocated_bytes();
}
void end_counting() { held_before = 0; }
#else
void begin_counting(const char*) {}
void end_counting() {}
#endif

}  // namespace

Limits::Limits(const char* what) : what_(what), began_ns_(time_taken_ns()) { begin_counting(what); }

Limits::~Limits() {
  end_counting();
  if (kTimed && time_taken_ns() - began_ns_ > std::chrono::nanoseconds(kMostTime).count())
    finding(std::string(what_) + ": more than a second");
}

void finding(const std::string& what) {
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::abort();
}

}  // namespace tt::fuzz
