// Compares analysis/experts/experts.h and expert_pinning.h with a reference implementation that
// reads all expert lists and computes each measure by its definition.
#pragma once

#include "tracer/format/file/session_reader.h"

namespace tt::test {

// Checks counts, measures, pairs, tokens and pinning. Returns the number of routing decisions.
std::uint64_t expect_experts(const SessionReader& reader);

}  // namespace tt::test
