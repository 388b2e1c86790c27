// The second way to what is said of sessions as a whole (analysis/comparison.h,
// report.h): one access after the other, by the names of what they belong to.
#pragma once

#include <filesystem>

#include "analysis/comparison.h"

namespace tt::testing {

// Sums by every axis that is compared, the tokens that both begin with, and that
// each step's template is paired once.
void expect_compared(const ComparedSession& left, const ComparedSession& right);

// The figures that a report tells, and that it tells them: as HTML, Markdown, JSON.
void expect_report(const std::filesystem::path& file, const SessionIndex& index,
                   const SessionReader& reader);

}  // namespace tt::testing
