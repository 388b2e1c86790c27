// The error of a question about a part that is not there. Any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "tracer/format/model/trace_error.h"

namespace tt {

// NotFound: "The session has no step 9: it has 4 steps, numbered from 0." `whole`: "session",
// "model"; `part`: a singular noun; `count`: how many of them there are.
TraceError no_such_part(std::string_view whole, std::string_view part, std::uint64_t asked,
                        std::uint64_t count);

}  // namespace tt
