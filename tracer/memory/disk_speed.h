// Measures the throughput of the disk while reads are in flight.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

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

}  // namespace tt
