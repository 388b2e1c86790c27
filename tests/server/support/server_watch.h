// Watches a tt-server process while a test sends it something hostile: the memory of the process
// and its children, and the response time of /health.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/sanitizers.h"

namespace tt::test {

// Anonymous memory of the process and its descendants.
std::uint64_t process_tree_bytes(pid_t process);
// The process and its descendants.
std::size_t process_tree_size(pid_t process);

// Of a hostile request, in the time of FairClock.
inline constexpr std::chrono::seconds kMaxResponseTime{2 * kTimeFactor};

class ServerWatch {
 public:
  static constexpr std::uint64_t kMaxGrowth = (256U << 20) * kMemoryFactor;
  // Freed, kept by the allocator. AddressSanitizer keeps freed blocks of each size, and the stack
  // traces of all allocations.
  static constexpr std::uint64_t kCached = (32U << 20) * (kAddressSanitizer ? 10 : 1);
  static constexpr std::chrono::milliseconds kMaxHealthTime{50 * kTimeFactor};

  ServerWatch(pid_t server, const std::string& url);
  ~ServerWatch() { stop(); }
  void stop();

  // Since construction, at the peak.
  std::uint64_t memory_growth() const;
  // Waits until the memory is at most `slack` above the initial one; false after 10 s.
  bool memory_returns(std::uint64_t slack = kCached) const;
  // 99th percentile of the response time of /health, minus that of a wake-up on this machine: other
  // processes may keep the cores busy. Failed requests count as 10 s.
  std::chrono::milliseconds health_p99() const;
  std::size_t health_requests() const;

  // EXPECTs the limits of docs/limits.md: 256 MiB, returned within 10 s except `kept` bytes,
  // /health below 50 ms; more under AddressSanitizer (tests/support/sanitizers.h).
  void expect_limits(std::uint64_t kept = 0);

 private:
  void watch_memory(const std::stop_token& stop);
  void watch_health(const std::stop_token& stop, const std::string& url);
  void watch_scheduler(const std::stop_token& stop);

  const pid_t server_;
  const std::uint64_t initial_;
  mutable std::mutex mutex_;
  std::uint64_t peak_;
  std::vector<std::chrono::nanoseconds> health_, wakeups_;
  std::vector<std::jthread> threads_;
};

}  // namespace tt::test
