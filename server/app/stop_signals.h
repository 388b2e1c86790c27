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
  // Begins the stop of the program. From now on the next signal (program/force_exit.h) terminates
  // the process immediately, and so does a stage that takes longer than `per_stage`: with the
  // exit status 1 and a message.
  void begin_stop(std::chrono::seconds per_stage);
  // The stage that begins, as the message names it: "finishing files". A literal.
  void stage(const char* what);

 private:
  std::chrono::seconds per_stage_{};
};

}  // namespace tt
