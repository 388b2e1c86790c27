// The second way to what a session says of the order of its reads (analysis/weights/pattern.h,
// reuse.h): every access of a step as a line of text, caches that are really simulated.
#pragma once

#include <cstdint>

#include "analysis/weights/reuse.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {

// determinism() and access_pattern(). Returns the share of right predictions, as
// reckoned here.
double expect_pattern(const SessionReader& reader);

// An LRU cache of whole items, as one would write it.
CachePoint simulated_lru(const ReadSequence& sequence, Bytes capacity);

// A cache that knows the future: of the bytes it has and those just read it keeps the ones
// whose next reads are nearest, and none that are not read again. Items in part, too.
CachePoint simulated_belady(const ReadSequence& sequence, Bytes capacity);

// Memory that holds the items with the most reads, of equals the first of the sequence,
// from their first read on; of the last one what still fits.
CachePoint simulated_pin(const ReadSequence& sequence, Bytes capacity);

// Each read's distance and bucket, from the list of items by their last reads.
void expect_distances(const ReadSequence& sequence);

// weight_reads() at both grains, the distances, the curves at `sizes` capacities: each as
// simulated, nothing better than Belady; that reuse() says the same. Returns how many
// reads there are at Grain::Part.
std::uint64_t expect_reuse(const SessionReader& reader, std::uint64_t sizes);

}  // namespace tt::test
