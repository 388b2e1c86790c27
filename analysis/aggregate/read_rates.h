// How fast the generating steps of a session read. Pure, any thread.
#pragma once

#include <optional>
#include <vector>

#include "analysis/common/machine_bounds.h"
#include "analysis/index/session_index.h"

namespace tt {

struct ReadRates {
  // Bytes per second of op time of each generating step that nothing disturbed, ascending.
  std::vector<double> clean;
  double fastest = 0;               // of all generating steps, disturbed ones included; 0: none
  std::optional<StepId> last_step;  // the last of them
};

ReadRates read_rates(const SessionIndex& index);

// Whether steps read faster than the read bandwidth: it is no bound of them then.
bool exceeds(double fastest_rate, const MachineBounds& bounds);

// machine_bounds() of the session's machine, without a read bandwidth that a step exceeded although
// the weights do not fit into the last cache ("exceeded").
MachineBounds session_bounds(const SessionIndex& index, std::uint64_t threads);

}  // namespace tt
