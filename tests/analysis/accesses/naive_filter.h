// Reference implementation of the op and access filters.
#pragma once

#include <cstdint>

#include "analysis/aggregate/trace_axis.h"
#include "tracer/format/access/access.h"

namespace tt::test {

bool op_passes(const TraceFilter& filter, const GraphTemplate& graph, std::uint32_t op,
               const KernelRules& rules);
bool access_passes(const TraceFilter& filter, const GraphTemplate& graph, const Access& access);

}  // namespace tt::test
