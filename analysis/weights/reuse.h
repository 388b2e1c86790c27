// Reuse of weight reads: reuse distances, and the bytes that a cache of a given capacity
// saves under three policies (LRU, optimal, pinning). Pure functions, any thread. Sequences
// have millions of reads, so each function calls `keep_going` every few milliseconds;
// Kind::Cancelled is the only error.
#pragma once

#include <cstdint>
#include <expected>
#include <limits>
#include <span>
#include <vector>

#include "analysis/columns/enumerations.h"
#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "analysis/weights/weight_reads.h"

namespace tt {

// Per read, the minimum capacity of an LRU cache that saves it: the total size of the
// distinct items read since the previous read of this item, including the item itself.
// kNever: a first read. Mattson's stack algorithm, O(log n) per read for n items.
inline constexpr Bytes kNever{std::numeric_limits<std::uint64_t>::max()};
std::expected<std::vector<Bytes>, TraceError> reuse_distances(
    const ReadSequence& sequence, const ContinueCheck& keep_going = never_cancel);

// Bucket i: distances from 2^i to 2^(i+1) - 1 bytes.
struct ReuseHistogram {
  struct Bucket {
    std::uint64_t reads = 0;
    Bytes bytes{};
    friend bool operator==(const Bucket&, const Bucket&) = default;
  };
  std::vector<Bucket> buckets;  // without trailing empty buckets
  Bucket first;                 // first reads, which no cache can save
};

// The reads of the sequence that a cache of `capacity`, initially empty, saves.
struct CachePoint {
  Bytes capacity{};
  std::uint64_t reads = 0;  // reads that are saved completely
  Bytes bytes{};            // bytes saved, including reads that are saved in part
  friend bool operator==(const CachePoint&, const CachePoint&) = default;
};

// LRU: the least recently used item is evicted first. Items are held completely; an item
// larger than the cache evicts everything. Exact at every capacity, in one pass.
struct LruReuse {
  ReuseHistogram histogram;
  std::vector<CachePoint> curve;  // at the given capacities
};
std::expected<LruReuse, TraceError> lru_reuse(const ReadSequence& sequence,
                                              std::span<const Bytes> capacities,
                                              const ContinueCheck& keep_going = never_cancel);

// Optimal replacement (Belady), which knows all future reads: the bytes with the farthest
// next read are evicted first. Items may be held in part. One pass for all capacities
// (optimal_caches.h).
std::expected<std::vector<CachePoint>, TraceError> belady_curve(
    const ReadSequence& sequence, std::span<const Bytes> capacities,
    const ContinueCheck& keep_going = never_cancel);

// Items in pinning order: most reads first; ties in sequence order. Each read of an item
// reads it completely, so this order saves most bytes per byte held.
std::vector<std::uint32_t> most_read_first(const ReadSequence& sequence);
std::vector<std::uint32_t> most_read_first(std::span<const std::uint64_t> reads);  // per item

// Pinning: the most read items are kept from their first read on and never evicted. The last
// item may be held in part.
std::expected<std::vector<CachePoint>, TraceError> pin_curve(
    const ReadSequence& sequence, std::span<const Bytes> capacities,
    const ContinueCheck& keep_going = never_cancel);

consteval columns::Enumeration words_of(Grain) { return columns::words_to("", Grain::Part); }

// All of the above for a complete session.
struct ReuseQuery {
  Grain grain = Grain::Part;
  std::vector<Bytes> capacities{};  // empty: `points` equal steps up to the distinct bytes
  std::uint32_t points = 10;
};
struct Reuse {
  Grain grain = Grain::Part;
  std::uint64_t items = 0, reads = 0;
  Bytes bytes{}, distinct{};  // as bytes() and distinct_bytes() of ReadSequence
  ReuseHistogram histogram;
  std::vector<CachePoint> lru, belady, pin;  // at the same capacities
};
std::expected<Reuse, TraceError> reuse(const SessionReader& reader, const ReuseQuery& query,
                                       const ContinueCheck& keep_going = never_cancel);
// The sequence must have been built with `query.grain`.
std::expected<Reuse, TraceError> reuse(const ReadSequence& sequence, const ReuseQuery& query,
                                       const ContinueCheck& keep_going = never_cancel);

Fields<ReuseHistogram::Bucket> fields_of(const ReuseHistogram::Bucket*);
Fields<CachePoint> fields_of(const CachePoint*);
Fields<Reuse> fields_of(const Reuse*);

}  // namespace tt
