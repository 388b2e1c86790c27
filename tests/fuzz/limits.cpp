#include "tests/fuzz/limits.h"

#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

std::atomic<const char*> current_query = "";

// The stack trace of the abort then shows the slow code.
void on_cpu_limit(int) {
  for (const char* part : {"finding: ", current_query.load(), ": more than a second\n"})
    static_cast<void>(!write(STDERR_FILENO, part, std::strlen(part)));
  std::abort();
}

// Counts the CPU time of all threads of this process, not the time of other processes.
void set_alarm(std::chrono::milliseconds in) {
  itimerval when{};
  when.it_value.tv_sec = in.count() / 1000;
  when.it_value.tv_usec = in.count() % 1000 * 1000;
  setitimer(ITIMER_VIRTUAL, &when, nullptr);
}

#ifdef TT_MEMORY_IS_COUNTED
// Globals, because the allocation hooks have no user argument.
std::atomic<std::size_t> baseline_bytes = 0;  // 0: no input is being measured
std::atomic<unsigned> allocations = 0;

// Reading the counter is slow: done for each large allocation and for a sample of the others.
void on_allocation(const volatile void*, std::size_t bytes) {
  constexpr std::size_t kLarge = 256 << 10;
  constexpr unsigned kOneOf = 4096;
  const std::size_t before = baseline_bytes.load(std::memory_order_relaxed);
  if (before == 0) return;
  if (bytes < kLarge && allocations.fetch_add(1, std::memory_order_relaxed) % kOneOf != 0) return;
  const std::size_t held = __sanitizer_get_current_allocated_bytes();
  if (held < before + kMaxGrowth) return;
  baseline_bytes = 0;
  report_finding(std::string(current_query.load()) + ": more than 256 MB");
}
void on_release(const volatile void*) {}

void begin_counting() {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(on_allocation, on_release);
  if (installed == 0) report_finding("memory cannot be counted");
  baseline_bytes = __sanitizer_get_current_allocated_bytes();
}
void end_counting() { baseline_bytes = 0; }
#else
void begin_counting() {}
void end_counting() {}
#endif

}  // namespace

Limits::Limits(const char* what) {
  current_query = what;
  begin_counting();
  if (!kTimed) return;
  static const auto installed = std::signal(SIGVTALRM, on_cpu_limit);
  if (installed == SIG_ERR) report_finding("time cannot be limited");
  set_alarm(kMaxTime);
}

Limits::~Limits() {
  if (kTimed) set_alarm(std::chrono::milliseconds(0));
  end_counting();
}

void report_finding(const std::string& what) {
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::abort();
}

}  // namespace tt::fuzz
