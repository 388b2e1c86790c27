// Keeps the process alive when a page of a mapped file cannot be accessed: the file was truncated,
// or the disk failed. The kernel then sends SIGBUS to the thread that accesses it. Guards model
// files, and the shared memory of SQLite (shared_memory_guard.h).
//
// The handler replaces the mapping from this page on with zeros, so that the thread continues,
// and sets a flag. What is computed from then on is worthless: whoever uses the mapping checks
// lost() after each step, discards the result and says so. SIGBUS elsewhere goes to the handler
// that was installed before.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

namespace tt {

// Addresses of the mapped part of a file.
struct MappedRange {
  std::uint64_t begin = 0, end = 0;
};

class MappingGuard {
 public:
  // Guards the ranges while it exists. `stop` is set to true together with lost(), so that the
  // running graph ends soon; it must outlive the guard. The first guard is created after
  // CrashMarker::install(): the handler that was installed last is asked first. At most kMaxRanges
  // ranges of all guards of the process are guarded. The first guard installs the handler.
  MappingGuard(std::span<const MappedRange> ranges, std::atomic<bool>& stop);
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

  // Any thread.
  bool lost() const { return lost_.load(std::memory_order_acquire); }

  static constexpr std::size_t kMaxRanges = 1024;

 private:
  friend struct MappingGuardHandler;
  std::atomic<bool> lost_{false};
  std::atomic<bool>& stop_;
};

}  // namespace tt
