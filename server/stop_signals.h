// SIGINT and SIGTERM as something that main waits for. Make it before any
// thread: they inherit that the signals are not theirs.
#pragma once

#include <chrono>

namespace tt {

class StopSignals {
 public:
  StopSignals();  // also: a client that goes away is no signal (SIGPIPE)
  // True when one arrived within the time.
  bool wait(std::chrono::milliseconds time);
  // From here on the next signal ends the process at once, and so does time.
  void insist(std::chrono::seconds patience);
};

}  // namespace tt
