// Compares analysis/aggregate/session_statistics.h with a reference implementation that walks
// every access of every step.
#pragma once

#include "analysis/aggregate/session_statistics.h"

namespace tt::test {

void expect_statistics(const SessionReader& reader, const SessionIndex& index,
                       const StatisticsQuery& query = {});

}  // namespace tt::test
