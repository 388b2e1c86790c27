// Compares analysis/report/comparison.h with a reference implementation that walks every access
// of both sessions and sums by name.
#pragma once

#include "analysis/report/comparison.h"

namespace tt::test {

// Checks the sums on each compared axis; the tokens with their times and the length of the common
// prefix; and that each template is paired once, with its best match.
void expect_comparison(const ComparedSession& left, const ComparedSession& right);

}  // namespace tt::test
