// The second way to a session's accesses counted (analysis/aggregate/session_statistics.h): every
// access of every step, one by one.
#pragma once

#include "analysis/aggregate/session_statistics.h"

namespace tt::test {

void expect_statistics(const SessionReader& reader, const SessionIndex& index,
                       const StatisticsQuery& query = {});

}  // namespace tt::test
