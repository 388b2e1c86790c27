// Measures the throughput of the disk: of the reads that are in flight anyway, or by reading, ahead
// or by page faults.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "tracer/memory/memory_plan.h"

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

// Bytes per second of reading the file as a plan does (ModelPages), with many reads in flight. Its
// pages are dropped before and after. `low` and `high`: the tenth and ninetieth percentile of its
// parts.
struct ReadSpeed {
  double mean = 0, low = 0, high = 0;
};
// At most the first `most` bytes, while so many threads compute: reading needs processor time, too.
// nullopt: the file cannot be read, or `keep_going` returned false.
std::optional<ReadSpeed> measure_read_speed(const std::filesystem::path& file, std::uint64_t most,
                                            unsigned busy_threads = 0,
                                            const std::function<bool()>& keep_going = {});

// What page faults at distant places of the file read, one at a time, as where nothing is read
// ahead. Takes at most about a second. The pages of the file are dropped before and after. nullopt:
// as above, or nothing was read from a disk.
std::optional<FaultReads> measure_fault_reads(const std::filesystem::path& file,
                                              const std::function<bool()>& keep_going = {});

}  // namespace tt
