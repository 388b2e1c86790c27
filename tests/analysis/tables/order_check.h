// Compares analyses of the read order (analysis/weights/pattern.h, reuse.h) with reference
// implementations: accesses as lines of text, and simulated caches.
#pragma once

#include <cstdint>

#include "analysis/weights/reuse.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {

// Checks determinism() and access_pattern(). Returns the share of correct predictions of the
// reference.
double expect_pattern(const SessionReader& reader);

// Simulates an LRU cache of whole items.
CachePoint simulated_lru(const ReadSequence& sequence, Bytes capacity);

// Simulates Belady's optimal cache: of the cached bytes and those just read it keeps the ones
// with the nearest next reads, and none that are not read again. Items may be cached in part.
CachePoint simulated_belady(const ReadSequence& sequence, Bytes capacity);

// Simulates pinned memory: the items with the most reads are kept from their first read on. Ties
// go to the first in the sequence; the last item may fit in part.
CachePoint simulated_pin(const ReadSequence& sequence, Bytes capacity);

// Checks the reuse distance and bucket of each read with a list of items by their last read.
void expect_distances(const ReadSequence& sequence);

// Checks weight_reads() at both grains, the distances, and the curves at `sizes` capacities with
// simulations; that Belady is the best; and that reuse() returns the same. Returns the number
// of reads at Grain::Part.
std::uint64_t expect_reuse(const SessionReader& reader, std::uint64_t sizes);

}  // namespace tt::test
