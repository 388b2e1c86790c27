// Time and memory of this process, for benchmarks of queries.
#pragma once

#include <chrono>
#include <ctime>
#include <fstream>
#include <string>

namespace tt::bench {

// Elapsed time and CPU time of this process, in milliseconds. On a machine with other load
// only the CPU time is meaningful.
struct Elapsed {
  double wall_ms = 0, cpu_ms = 0;
};

class Stopwatch {
 public:
  Elapsed elapsed() const {
    return {std::chrono::duration<double, std::milli>(Clock::now() - begin_).count(),
            process_cpu_ms() - cpu_start_};
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double process_cpu_ms() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
  }
  Clock::time_point begin_ = Clock::now();
  double cpu_start_ = process_cpu_ms();
};

inline double anonymous_mb() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("RssAnon:")) return std::stod(line.substr(8)) / 1024;
  }
  return 0;
}

}  // namespace tt::bench
