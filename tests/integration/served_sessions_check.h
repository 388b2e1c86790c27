// Sessions as a server tells of them.
#pragma once

#include <filesystem>

namespace tt::test {

// Of every .ttrace in `folder`, whose steps have all their ops: the five totals of a walk
// over every access, by SQL, steps, pages of accesses, breakdowns, pictures and the CSV
// that the server sends; and every other question is answered. Returns how many there were.
int expect_served_sessions(const std::filesystem::path& folder);

}  // namespace tt::test
