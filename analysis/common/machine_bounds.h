// The rates that bound the ops of a session: how fast its machine reads memory and computes, from
// the facts of the recording. How they are measured: docs/findings.md. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>

#include "tracer/format/model/session.h"

namespace tt {

// What comes so near to a rate of the machine is limited by it.
inline constexpr double kNearBound = 0.7;

// A measured rate is not exact: what reads faster than this, times the read bandwidth, has its
// bytes from caches, or the measurement is too low.
inline constexpr double kFasterThanMemory = 1.1;

struct MachineBounds {
  double read_bandwidth = 0;  // bytes per second; 0: not known
  double compute_peak = 0;    // operations per second; 0: not known
  // Why, in a word; empty: it is known. That of the recording (docs/findings.md), other_threads,
  // imported, not_recorded, or exceeded (analysis/aggregate/read_rates.h).
  std::string no_read_bandwidth, no_compute_peak;
  std::uint64_t last_cache = 0;  // bytes; 0: not known
};
// The word as a part of a sentence: "the model is not larger than the last cache".
const char* reason_of(const std::string& word);

// Of steps with so many threads: a measurement with other threads says nothing of them.
MachineBounds machine_bounds(const SessionInfo& info, std::uint64_t threads);

}  // namespace tt
