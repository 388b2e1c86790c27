// Measures what loading a model costs: time by part, page faults, and bytes read from disks. The
// counts are those of the process, which may run requests of other models meanwhile. Stored as
// facts of the sessions of the model: "load.duration_ns", "load.weights_ns", ...
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tracer/recorder/machine_state.h"

namespace tt {

class LoadRecord {
 public:
  using Facts = std::vector<std::pair<std::string, std::string>>;

  // What was done since the construction, or since the last call, is called `part`.
  void end_part(const char* part);
  // The parts so far, and the sums.
  Facts facts() const;

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
  const MachineState::Usage before_ = MachineState::usage();
  Facts parts_;
};

}  // namespace tt
