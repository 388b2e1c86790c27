// Lets main wait synchronously for SIGINT, SIGTERM and SIGUSR1. Create it before any thread
// starts: threads inherit the blocked signal mask.
#pragma once

#include <chrono>
#include <cstdint>

namespace tt {

enum class Signal : std::uint8_t {
  None,      // timeout
  Stop,      // SIGINT, SIGTERM
  NewLogin,  // SIGUSR1: print a login link
};

class StopSignals {
 public:
  StopSignals();  // also ignores SIGPIPE
  // Returns the first signal that arrives within `time`.
  Signal wait(std::chrono::milliseconds time);
  // After this call the next signal (program/force_exit.h), or the end of the timeout,
  // terminates the process immediately.
  void force_exit_after(std::chrono::seconds timeout);
  // What is done now, for the message of a forced exit: "finishing files". A literal.
  static void stage(const char* what);
};

}  // namespace tt
