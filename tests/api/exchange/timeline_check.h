// Compares exported timelines with the session: each op is once on each of its tracks.
#pragma once

#include "tracer/format/file/session_reader.h"

namespace tt::test {

// Checks the Chrome and Perfetto traces of a recorded session: begin, end and name of the slices
// of each track (steps with ops, layers, op kinds, memory sources), counters and flows. The
// expected values come from a walk over ops and accesses that does not use api/exchange. Returns
// the number of slices of one format.
std::uint64_t expect_timelines(const SessionReader& reader);

}  // namespace tt::test
