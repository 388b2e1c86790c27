// What the machine did to a step or a session: one verdict from the recorded conditions.
// Rule, thresholds and their measurement: docs/conditions.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"

namespace tt {

enum class Verdict : std::uint8_t {
  Clean,      // nothing of the following
  Contended,  // threads waited for a processor
  Throttled,  // a CPU limit stopped the threads, or the processors were too hot
  Disk        // threads waited for the disk
};
const char* to_text(Verdict);

// Where the time of the threads that evaluated went, summed over steps. Any thread.
struct ThreadTime {
  double total_ns = 0;      // threads times time
  double cpu_ns = 0;        // on a processor
  double wait_ns = 0;       // waiting for a processor
  double throttled_ns = 0;  // stopped by a CPU limit; part of the rest
  double hot_ns = 0;        // all time of steps in which a processor was slowed down: too hot
  double blocked_ns = 0;    // none of these, in steps with major page faults
  double faults = 0;        // major
  double bytes = 0;         // read from disks

  // Shares of total_ns from which on time is lost for this reason.
  static constexpr double kThrottled = 0.05, kHot = 0.05, kContended = 0.05, kDisk = 0.10;
  // Less is no loss, whatever its share: waking a thread takes this long.
  static constexpr double kLeastNs = 100'000;

  // Returns false, and adds nothing, if the conditions do not have the times of the threads.
  bool add(const StepConditions& conditions, std::uint32_t threads);
  ThreadTime& operator+=(const ThreadTime& other);
  // nullopt: nothing was added.
  std::optional<Verdict> verdict() const;
  friend bool operator==(const ThreadTime&, const ThreadTime&) = default;
};

// nullopt: the conditions were not recorded.
std::optional<Verdict> verdict_of(const StepConditions& conditions, std::uint32_t threads);

// Steps that a query leaves out. Disturbed: whose verdict is known and not clean.
enum class LeaveOut : bool { Nothing, Disturbed };
bool is_left_out(LeaveOut leave_out, const StepConditions& conditions, std::uint32_t threads);

// The threads that evaluated, and the processors that the process could use: the smallest of those
// of the machine, of its affinity and of its CPU limit (rounded down). 0: not known.
struct ThreadRoom {
  std::uint64_t threads = 0, processors = 0;
  double cpu_limit = 0;  // in processors; 0: none, or not known
  // More threads than processors, or than the limit allows: they wait, whatever else runs.
  bool is_crowded() const { return has_too_many_threads() || is_below_one_thread(); }
  bool has_too_many_threads() const { return processors > 0 && threads > processors; }
  bool is_below_one_thread() const { return cpu_limit > 0 && cpu_limit < 1 && threads > 0; }
};
ThreadRoom thread_room(const SessionInfo& info);

// The verdict with its evidence and what to do, in one line.
std::string advice_on(Verdict verdict, const ThreadTime& time, const ThreadRoom& room);

}  // namespace tt
