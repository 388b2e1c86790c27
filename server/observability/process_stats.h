// Resource usage of this process, sampled on each call.
#pragma once

#include <cstdint>

namespace tt {

// Values are 0 where /proc cannot be read.
struct ProcessStats {
  double start_utc_seconds = 0;
  double cpu_seconds = 0;  // user and system
  std::uint64_t resident_bytes = 0, virtual_bytes = 0;
  std::uint64_t threads = 0;
  std::uint64_t open_fds = 0, max_fds = 0;
};
ProcessStats process_stats();

}  // namespace tt
