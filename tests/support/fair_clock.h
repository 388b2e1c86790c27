// A clock for bounds on times in tests: it counts the share of the processors that other programs
// leave. While they leave a tenth, it runs at a tenth of the speed of steady_clock, so a bound of
// 2 s is 20 s beside them. On an otherwise idle machine it is steady_clock: what the test and the
// programs that it started do to each other counts fully.
//
// Computed from /proc/stat and the processor times of this process and its descendants, which the
// kernel counts in hundredths of a second: for bounds of 100 ms and more. Does not need gtest, so
// that child processes can use it.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <format>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>

#include "tests/support/process_tree.h"

namespace tt::test {

class FairClock {
 public:
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<FairClock>;
  static constexpr bool is_steady = true;

  static time_point now() {  // any thread
    static std::mutex mutex;
    static Sample last;
    static double share = 1;
    static duration counted{}, latest{};
    const std::lock_guard lock(mutex);
    if (Steady::now() - last.at >= kSampleInterval) {
      const Sample next;
      share = share_between(last, next);
      counted += part(share, next.at - last.at);
      last = next;
    }
    latest = std::max(latest, counted + part(share, Steady::now() - last.at));
    return time_point(latest);
  }

 private:
  using Steady = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  // In shorter intervals the kernel's counts say too little.
  static constexpr std::chrono::milliseconds kSampleInterval{100};
  // A test that waits without needing a processor ends nevertheless.
  static constexpr double kLeastShare = 0.05;

  struct Sample {
    Steady::time_point at = Steady::now();
    Seconds busy = busy_time(), own = own_time();
  };

  static duration part(double share, Steady::duration passed) {
    return std::chrono::duration_cast<duration>(share * Seconds(passed));
  }

  static Seconds from_ticks(std::int64_t ticks) {
    return Seconds(static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK)));
  }

  // Of all programs, and what a hypervisor gave to other machines.
  static Seconds busy_time() {
    std::ifstream file("/proc/stat");
    std::string cpu;
    std::int64_t user = 0, nice = 0, system = 0, idle = 0, disk = 0, irq = 0, soft = 0, steal = 0;
    file >> cpu >> user >> nice >> system >> idle >> disk >> irq >> soft >> steal;
    return from_ticks(user + nice + system + irq + soft + steal);
  }

  // Of this process and its descendants, also of those that ended.
  static Seconds own_time() {
    std::int64_t ticks = 0;
    for (const pid_t process : process_tree(getpid())) {
      std::ifstream file(std::format("/proc/{}/stat", process));
      std::string text;
      std::getline(file, text, '\0');  // an iterator of the buffer would throw if it ends now
      const std::size_t name_end = text.rfind(')');
      if (name_end == std::string::npos) continue;  // it has ended
      std::istringstream fields(text.substr(name_end + 1));
      std::string skipped;
      for (int i = 0; i < 11; ++i) fields >> skipped;
      // utime, stime, cutime, cstime
      for (std::int64_t i = 0, value = 0; i < 4 && fields >> value; ++i) ticks += value;
    }
    return from_ticks(ticks);
  }

  // The share of the processors that others left between two samples.
  static double share_between(const Sample& from, const Sample& to) {
    const auto processors = static_cast<double>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
    // A descendant that was killed with its parent is missing from the sum.
    const Seconds own = std::max(to.own - from.own, Seconds(0));
    const Seconds others = std::max(to.busy - from.busy - own, Seconds(0));
    return std::clamp(1 - others / (processors * Seconds(to.at - from.at)), kLeastShare, 1.0);
  }
};

}  // namespace tt::test
