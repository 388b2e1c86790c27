// Records the major page faults of the threads that evaluate graphs: accesses to bytes of a
// model that had to be read from the disk, because the model is larger than memory or was
// not read yet. On request also minor faults: the page was in memory, or new.
//
// The kernel reports the address and time of each fault (perf_event_open, software event
// page-faults:maj) to unprivileged users if perf_event_paranoid is 2 or less. If it does not
// (container policy, other setting), faults are only counted (getrusage), for the whole
// process. The number of faults is not the number of pages read: because of readahead, most
// pages are loaded without a fault. Faults inside the kernel (for example read() into a
// buffer in a mapped file) are not recorded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tracer/format/model/step.h"

namespace tt {

class PageFaults {
 public:
  // Watches the calling thread and all threads that it and its descendants start later. Call on
  // the inference thread before llama.cpp creates its workers. Faults of the thread that calls
  // take() are skipped: it may be a descendant but evaluates nothing.
  static std::unique_ptr<PageFaults> watch();
  // The same for a thread of another process of this user, and all that it starts later in its
  // process; `pid`: its id. Faults are not counted if their addresses are not known.
  static std::unique_ptr<PageFaults> watch(int pid);
  ~PageFaults();
  PageFaults(const PageFaults&) = delete;
  PageFaults& operator=(const PageFaults&) = delete;

  bool records_addresses() const { return !rings_.empty(); }  // false: only counted
  // "perf", or "getrusage: " and why perf is not available. Stored as a fact of the session.
  const std::string& source() const { return source_; }

  // "perf", or why minor faults are not recorded.
  const std::string& minor_source() const { return minor_source_; }

  // The kernel records only between start() and stop(), so that lost() counts only these. With
  // `minor` also minor faults: they share the rings.
  void start(bool minor = false);
  void stop();
  // Call on the thread that calls start() and stop(). Appends the faults since the last call and
  // sorts both lists by time. PageFault::at is a steady_clock time. Includes every fault that ended
  // before the call, unless a ring overflowed: call it often enough (capacity: kRingCapacity per
  // ring).
  void take(std::vector<PageFault>& major, std::vector<PageFault>& minor);
  // Number of faults lost by overflow, up to the last take(). The kernel reports an overflow of a
  // ring only with the next fault on that processor.
  std::uint64_t lost() const { return lost_; }
  // Major page faults of the process so far. Any thread.
  static std::uint64_t count();

  static constexpr std::size_t kRingCapacity =
      3'200;  // approximate, in faults; one ring per processor

 private:
  struct Ring;
  PageFaults(std::vector<Ring> rings, std::string source, std::string minor_source);
  std::vector<Ring> rings_;
  std::string source_, minor_source_;
  std::uint64_t lost_ = 0;
};

}  // namespace tt
