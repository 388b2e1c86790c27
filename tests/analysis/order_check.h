// The second way to what a session says of the order of its reads (analysis/pattern.h,
// reuse.h): every access of a step as a line of text, caches that are really simulated.
#pragma once

#include <cstdint>

#include "analysis/reuse.h"
#include "tracer/format/session_reader.h"

namespace tt::testing {

// determinism() and access_pattern(). Returns the share of right predictions, as
// reckoned here.
double expect_pattern(const SessionReader& reader);

// An LRU cache of whole items, as one would write it.
CachePoint simulated_lru(const ReadSequence& sequence, Bytes capacity);

// weight_reads() at both grains, the curves at `sizes` capacities: LRU as simulated,
// nothing better than Belady. Returns how many reads there are at Grain::Part.
std::uint64_t expect_reuse(const SessionReader& reader, std::uint64_t sizes);

}  // namespace tt::testing
