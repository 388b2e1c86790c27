// The time that steps take when other programs hardly disturb them.
#pragma once

#include <span>

namespace tt {

// Of steps of one kind, in the order in which they ran: the least median of 16 steps in a row, or
// of a quarter of the steps if that is less. A processor that is shared, or that changes its
// frequency, is fast for some milliseconds and slow for others; the median leaves out single steps
// that were interrupted. No steps: 0.
double quiet_time(std::span<const double> times);

}  // namespace tt
