// The same totals whichever way they are asked for.
#pragma once

#include <filesystem>

namespace tt::testing {

// Of a session whose steps have all their ops: by a walk over every access, by SQL
// over the rows and over the tables of totals, by sums over steps, by a picture, by
// what every step says of itself, and by what an export says of the session.
void expect_totals_agree(const std::filesystem::path& file);

}  // namespace tt::testing
