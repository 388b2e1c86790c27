// The major page faults of the threads that evaluate graphs: when bytes of a model that
// is larger than memory, or was not read yet, really had to come from the disk.
//
// The kernel tells of each, with its address and time (perf_event_open, software event
// page-faults:maj), unprivileged where perf_event_paranoid is 2 or less. Where it does
// not (a container's rules, another setting), they are counted (getrusage), for the
// whole process. A fault is not a page: the kernel reads ahead, so that most pages come
// in without one. Faults inside the kernel (a read into a buffer that lies in a file)
// are left out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tracer/format/model/step.h"

namespace tt {

class PageFaults {
 public:
  // Of the calling thread and of every thread that it, or one of these, starts from now
  // on: called on the inference thread before llama.cpp has made its workers. The thread
  // that takes is left out, as it may be one of these and evaluates nothing.
  static std::unique_ptr<PageFaults> watch();
  ~PageFaults();
  PageFaults(const PageFaults&) = delete;
  PageFaults& operator=(const PageFaults&) = delete;

  bool told() const { return !rings_.empty(); }  // else they are counted
  // "perf", or "getrusage: " and why the kernel does not tell: a session's fact.
  const std::string& source() const { return source_; }

  // The kernel tells only between these two, so that nothing is lost that nobody wants.
  void start();
  void stop();
  // The thread that starts and stops. Adds what came since the last call; all of
  // `out` is in order of time then. `at` is a time of the steady clock. Every fault that was over
  // before the call is in it, unless the kernel had no room: call it often enough (each ring has
  // room for kRoom).
  void take(std::vector<PageFault>& out);
  // For want of room, as far as the last take() was told: a processor tells with its next
  // fault that there was no room for some before.
  std::uint64_t lost() const { return lost_; }
  // Of the process so far. Any thread.
  static std::uint64_t count();

  static constexpr std::size_t kRoom = 4'000;  // faults, about; one ring per processor

 private:
  struct Ring;
  PageFaults(std::vector<Ring> rings, std::string source);
  std::vector<Ring> rings_;
  std::string source_;
  std::uint64_t lost_ = 0;
};

}  // namespace tt
