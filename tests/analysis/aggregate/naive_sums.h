// Reference sums of a session by the row names of one axis: walks each op and each access of
// each step, with the rules of docs/heat.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/aggregate/breakdown.h"
#include "tracer/format/access/access.h"

namespace tt::test {

// The access that an op's time is attributed to; null: the op has no access.
const Access* main_access(const GraphTemplate& graph, const std::vector<Access>& accesses,
                          std::uint32_t op);

// By phase, component, layer, op kind or tensor; rows of the same name are added. On the tensor
// axis, an op whose time belongs to no tensor is under "".
using NaiveSums = std::map<std::string, TraceSums>;
NaiveSums naive_sums(const SessionReader& reader, Axis axis,
                     std::optional<Phase> phase = std::nullopt);

// Expects equal sums, except for rounding of time shares.
void expect_equal_sums(const TraceSums& seen, const TraceSums& expected);

}  // namespace tt::test
