// What changed between two sessions, in one sentence, the only one: tt compare prints it, REST
// returns it, the page shows it. Pure function.
#pragma once

#include <string>

#include "analysis/report/comparison.h"

namespace tt {

// "A generated token takes 12.0 % longer in the second session, 1.32 ms instead of 1.18 ms, a
// significant difference (99 % interval of the change: +9.1 % to +14.8 %, from the fastest of 24
// and 22 undisturbed steps); it reads 26.9 MiB instead of 20.1 MiB." The left session is the first.
std::string what_changed(const Comparison& comparison);

}  // namespace tt
