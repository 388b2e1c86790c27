// The same totals whichever way they are asked for.
#pragma once

#include <filesystem>

namespace tt::test {

// Accesses and bytes, ops and their time: by a walk over every access and op, by SQL over
// the rows and over the tables of totals, by what every step says of itself, by
// breakdowns and by pictures.
void expect_totals_agree(const std::filesystem::path& file);

}  // namespace tt::test
