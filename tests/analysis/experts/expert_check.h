// The second way to the use of experts (analysis/experts/experts.h, expert_pinning.h):
// every list of a session's steps read by itself, every measure by its definition.
#pragma once

#include "tracer/format/file/session_reader.h"

namespace tt::test {

// Counts, measures, pairs, tokens and pinning of a session, as reckoned here.
// Returns how many choices of experts it has.
std::uint64_t expect_experts_counted(const SessionReader& reader);

}  // namespace tt::test
