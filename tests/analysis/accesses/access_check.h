// The second way to lists of accesses: collect every access of the session, leave
// out what does not pass, sort, cut.
#pragma once

#include <cstdint>

#include "tracer/format/file/session_reader.h"

namespace tt::test {

// `questions` random ones about all steps, in every order, each walked by cursor
// to its end, with or without the session's index, which knows which steps have a row;
// and as many about one step. Returns how many rows were compared.
std::uint64_t expect_accesses(const SessionReader& reader, std::uint64_t seed, int questions);

}  // namespace tt::test
