// Measures the throughput of the disk: of the reads that are in flight anyway, or by reading, ahead
// or by page faults.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "tracer/memory/plan/memory_plan.h"

namespace tt {

// Counts what this process reads from block devices, readahead of page faults included. One
// thread.
class DiskSpeed {
 public:
  // Call often: reads are, or are not, in flight from now on.
  void busy(bool now_busy);
  double bytes_per_second() const { return speed_; }  // 0: not measured yet

 private:
  using Clock = std::chrono::steady_clock;
  void sample();

  std::optional<Clock::time_point> busy_since_;
  std::uint64_t bytes_at_start_ = 0, sum_bytes_ = 0;
  double seconds_ = 0, sum_seconds_ = 0, speed_ = 0;
};

// What of a file is read, and how.
struct ReadPattern {
  std::uint64_t most = UINT64_MAX;    // bytes
  std::uint64_t piece = 0;            // bytes; 0: a block (ModelPages), or 1 MiB
  bool blocks = true;                 // else page by page
  std::uint64_t window = 32U << 20;   // bytes in flight; 0: one piece after the other
  std::uint64_t stride = 1;           // every so many pieces
  std::chrono::microseconds pause{};  // before each piece
  unsigned busy_threads = 0;          // that compute meanwhile: reading needs processor time, too
};

// Bytes per second. `low` and `high`: the tenth and ninetieth percentile of its parts.
struct ReadSpeed {
  double mean = 0, low = 0, high = 0;
  double processor_seconds = 0;  // of the thread that waits, per byte
};
// Reads the file as a plan does, with the priority of its thread. The pages of the file are dropped
// before and after. nullopt: the file cannot be read, or `keep_going` returned false.
std::optional<ReadSpeed> measure_read_speed(const std::filesystem::path& file,
                                            const ReadPattern& pattern = {},
                                            const std::function<bool()>& keep_going = {});

// Reads by page faults at distant places of the file, one at a time, as where nothing is read
// ahead; maps what they have read, and drops it, as the kernel does where memory is short.
// `threads`: that do the latter at the same time. Takes at most about a
// second. The pages of the file are dropped before and after. nullopt: as above, or nothing was
// read from a disk.
std::optional<FaultReads> measure_fault_reads(const std::filesystem::path& file, unsigned threads,
                                              const std::function<bool()>& keep_going = {});

// What a page fault reads, as the kernel is set up: twice the readahead size of the disk, because
// llama.cpp says that it reads in order (POSIX_FADV_SEQUENTIAL). 0: the size is not known.
std::uint64_t fault_bytes(const std::filesystem::path& file);

}  // namespace tt
