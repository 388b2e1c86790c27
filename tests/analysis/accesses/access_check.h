// Compares access lists with a reference implementation that collects all accesses of the
// session, filters, sorts and truncates.
#pragma once

#include <cstdint>

#include "tracer/format/file/session_reader.h"

namespace tt::test {

// Checks `questions` random queries over all steps in every order, paged by cursor to the end,
// with and without the session's index (it knows which steps have matching rows), and as many
// queries over one step. Returns the number of compared rows.
std::uint64_t expect_accesses(const SessionReader& reader, std::uint64_t seed, int query_count);

}  // namespace tt::test
