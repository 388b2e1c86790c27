// Timelines against the session: every op once on each track that it belongs to.
#pragma once

#include "tracer/format/file/session_reader.h"

namespace tt::test {

// Of a recorded session: in the Chrome trace and in the Perfetto trace, the slices of
// every track (steps with their ops, layers, kinds of op, memory sources), begin, end
// and name; the counters; the flows. All by a walk over ops and accesses, without
// anything of api/exchange. Returns how many slices a format has.
std::uint64_t expect_timelines(const SessionReader& reader);

}  // namespace tt::test
