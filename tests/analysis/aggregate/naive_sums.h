// Sums of a session by the names of one axis: every op and every access of every step,
// one after the other, as docs/heat.md says what counts where.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/aggregate/breakdown.h"
#include "tracer/format/access/access.h"

namespace tt::test {

// The access that an op's time counts for; null: it makes none.
const Access* main_access(const GraphTemplate& graph, const std::vector<Access>& accesses,
                          std::uint32_t op);

// By phase, component, layer, op kind or tensor; what has the same name is added up. An op
// of which no tensor has the time is under "" where tensors are asked for.
using NaiveSums = std::map<std::string, TraceSums>;
NaiveSums naive_sums(const SessionReader& reader, Axis axis,
                     std::optional<Phase> phase = std::nullopt);

// `seen` is `expected`, but for the rounding of shares of times.
void expect_equal_sums(const TraceSums& seen, const TraceSums& expected);

}  // namespace tt::test
