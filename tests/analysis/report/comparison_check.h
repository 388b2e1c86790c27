// The second way to a comparison of two sessions (analysis/report/comparison.h): one access
// after the other, by the names of what they belong to.
#pragma once

#include "analysis/report/comparison.h"

namespace tt::test {

// Sums by every axis that is compared; the tokens, each with its time, and how many both
// begin with; that each step's template is paired once, with the best there is.
void expect_compared(const ComparedSession& left, const ComparedSession& right);

}  // namespace tt::test
