// Checks sessions as the server returns them.
#pragma once

#include <filesystem>

namespace tt::test {

// For every .ttrace in `folder`, whose steps must have all their ops: compares the five totals
// of a walk over every access with those of SQL, steps, access pages, breakdowns, rasters and
// the CSV from the server. Every other query must succeed. Returns the number of sessions.
int expect_served_sessions(const std::filesystem::path& folder);

}  // namespace tt::test
