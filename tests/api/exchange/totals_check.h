// Checks that all interfaces return the same totals.
#pragma once

#include <filesystem>

namespace tt::test {

// Compares accesses, bytes, ops and op time of: a walk over every access and op, SQL over rows,
// SQL over the tables of totals, the step summaries, breakdowns and rasters.
void expect_totals_agree(const std::filesystem::path& file);

}  // namespace tt::test
