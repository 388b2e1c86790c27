// The first SIGINT or SIGTERM asks to finish, the second ends the process
// (program/second_signal.h). One at a time in a program.
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
  struct sigaction int_before_ = {}, term_before_ = {};
};

// Whether one of them has come.
bool was_interrupted();

}  // namespace tt::cli
