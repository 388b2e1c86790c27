// Handles SIGINT and SIGTERM while it exists: the first one requests a stop, the second one
// ends the process (program/force_exit.h). At most one instance at a time.
#pragma once

#include <csignal>

namespace tt::cli {

class InterruptGuard {
 public:
  InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard();

 private:
  struct sigaction previous_int_ = {}, previous_term_ = {};
};

// True after the first SIGINT or SIGTERM.
bool was_interrupted();

}  // namespace tt::cli
