// SIGINT, SIGTERM and SIGUSR1 as something that main waits for. Make it before
// any thread: they inherit that the signals are not theirs.
#pragma once

#include <chrono>
#include <cstdint>

namespace tt {

enum class Signal : std::uint8_t {
  None,      // the time is over
  Stop,      // SIGINT, SIGTERM
  NewLogin,  // SIGUSR1: print a login link
};

class StopSignals {
 public:
  StopSignals();  // also: a client that goes away is no signal (SIGPIPE)
  // The first that arrives within the time.
  Signal wait(std::chrono::milliseconds time);
  // From here on the next signal (program/second_signal.h) ends the process at once, and so
  // does time.
  void insist(std::chrono::seconds patience);
};

}  // namespace tt
