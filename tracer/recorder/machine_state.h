// Reads what the machine does to the evaluation of a graph: the conditions of each step, other than
// what its own time was spent on. Nobody else is asked and nothing is configured: every value is
// one that the kernel counts anyway.
//
// The costs are a few microseconds per step, outside the graph: files are kept open, and what is
// needed less often is read at most every 10 ms (pressure, CPU limits, frequency, temperature), or
// once per second (memory limit, locked memory). A value that the system
// does not provide is absent, and source() says why.
//
// Use on the inference thread.
#pragma once

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/format/model/step.h"
#include "tracer/memory/limits/memory_limit.h"

namespace tt {

class MachineState {
 public:
  // Gives the calling thread a name of its own. Threads inherit the name of the thread that
  // starts them, by which begin() and take() find llama.cpp's workers. Call before it creates
  // them. `root` contains /proc and /sys; tests replace it.
  explicit MachineState(std::filesystem::path root = "/");
  ~MachineState();
  MachineState(const MachineState&) = delete;
  MachineState& operator=(const MachineState&) = delete;

  // The recorder's own thread; call before begin(). While it runs, threads that evaluate may wait
  // for its processor. This is no fault of the machine, so its CPU time is subtracted from the time
  // of waiting. Once it has ended, nothing is subtracted.
  void set_recorder(pthread_t thread);
  // Start of a session.
  void begin();
  // The conditions of the machine since the last call, or since begin(). `threads` evaluated the
  // graph; if fewer are found, their times are absent. Other values are those of `known`.
  StepConditions take(std::uint32_t threads, const StepConditions& known = {});
  // "all", or the values that the system did not provide since begin(), with reasons. Stored as a
  // fact of the session.
  std::string source() const;

  // Of this process, since it started: context switches, page faults, bytes read from disks.
  struct Usage {
    std::uint64_t voluntary, involuntary, minor, major, disk_bytes;
  };
  static Usage usage();

  static constexpr std::chrono::milliseconds kSlowInterval{10}, kRareInterval{1000};
  // Reading the frequency of a processor makes some kernels wait. It is not read if all of them
  // take longer than this.
  static constexpr std::chrono::microseconds kMaxFrequencyTime{200};

 private:
  class KernelFile;
  struct Thread;
  struct Counter;

  std::string proc(std::string_view name) const;
  void lack(std::string values, std::string reason);
  void open_counters();
  void find_threads(bool since_begin);
  std::uint64_t thread_count() const;
  std::uint64_t recorder_time();
  void read_threads(std::uint32_t threads, StepConditions& out);
  void read_usage(StepConditions& out);
  void read_counters(StepConditions& out);
  void open_frequencies();
  StepConditions::Value frequency();
  void read_memory();

  const std::filesystem::path root_;
  std::string name_;  // of the threads that evaluate
  std::vector<Thread> threads_;
  std::uint64_t threads_of_process_ = 0;     // when threads_ was found
  std::optional<clockid_t> recorder_clock_;  // of its CPU time
  std::uint64_t recorder_ns_ = 0;            // at the last reading
  // Read at most every 10 ms: pressure, CPU limits, temperature.
  std::vector<Counter> counters_;
  std::vector<KernelFile> frequencies_;  // one per processor
  std::optional<MemoryLimitReader> memory_limit_;
  StepConditions levels_;  // the last reading of them; other values are absent
  Usage usage_{};
  bool counts_disk_ = false, counts_threads_ = false;
  std::chrono::steady_clock::time_point last_, last_slow_, last_rare_;
  std::vector<std::pair<std::string, std::string>> lacking_;  // values, reason
};

// The cpu.stat files of the groups (cgroup v1 or v2) that can limit the CPU time of this
// process: of its group and of the groups around it. Empty: there is no CPU controller.
std::vector<std::filesystem::path> cpu_group_files(const std::filesystem::path& root = "/");

}  // namespace tt
