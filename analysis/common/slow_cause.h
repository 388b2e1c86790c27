// Why a step took long.
#pragma once

#include <string>

#include "tracer/format/model/step.h"

namespace tt {

// The first cause that the recording has, in words: "other programs: waited 12.0 ms for a
// processor", "32 tokens at once". "none found", or "not recorded". Pure, any thread.
std::string slow_cause(const Step& step);

}  // namespace tt
