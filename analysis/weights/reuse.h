// What memory would save of the reads of weights: how far apart the reads of the
// same bytes are, and what a cache of so many bytes would have kept under three
// policies. Pure functions, any thread. Sequences have millions of reads: each
// function asks `keep_going` every few milliseconds, and fails with Kind::Cancelled
// alone.
#pragma once

#include <cstdint>
#include <expected>
#include <limits>
#include <span>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/weights/weight_reads.h"

namespace tt {

// Per read, the least capacity of an LRU cache that would have saved it: the
// sizes of the distinct items read since this one was, its own included.
// kNever: a first read. Mattson's stack in O(log n) a read.
inline constexpr Bytes kNever{std::numeric_limits<std::uint64_t>::max()};
std::expected<std::vector<Bytes>, TraceError> reuse_distances(const ReadSequence& sequence,
                                                              const KeepGoing& keep_going = always);

// Bucket i: distances from 2^i up to 2^(i+1) - 1 bytes.
struct ReuseHistogram {
  struct Bucket {
    std::uint64_t reads = 0;
    Bytes bytes{};
    friend bool operator==(const Bucket&, const Bucket&) = default;
  };
  std::vector<Bucket> buckets;  // without empty ones at the end
  Bucket first;                 // reads that nothing could have saved
};
std::expected<ReuseHistogram, TraceError> reuse_histogram(const ReadSequence& sequence,
                                                          std::span<const Bytes> distances,
                                                          const KeepGoing& keep_going = always);

// What a cache of `capacity`, empty at the start, saves of the sequence.
struct CachePoint {
  Bytes capacity{};
  std::uint64_t reads = 0;  // wholly saved
  Bytes bytes{};            // saved, of reads that are saved in part, too
  friend bool operator==(const CachePoint&, const CachePoint&) = default;
};

// Least recently used goes first; items are held whole, and one that is larger
// than the cache drives out everything. Exact at every capacity, from one pass.
std::expected<std::vector<CachePoint>, TraceError> lru_curve(const ReadSequence& sequence,
                                                             std::span<const Bytes> distances,
                                                             std::span<const Bytes> capacities,
                                                             const KeepGoing& keep_going = always);

// The best that any cache could do which knows the future (Belady): the bytes
// with the farthest next read go first, items may be held in part. O(n log n)
// for each capacity.
std::expected<std::vector<CachePoint>, TraceError> belady_curve(
    const ReadSequence& sequence, std::span<const Bytes> capacities,
    const KeepGoing& keep_going = always);

// Items in the order in which they are pinned: what is read most often, then what the
// sequence has first. An item is read whole, so that this saves most per byte held.
std::vector<std::uint32_t> most_read_first(const ReadSequence& sequence);
std::vector<std::uint32_t> most_read_first(std::span<const std::uint64_t> reads);  // per item

// What is read most often is kept from its first read on and never given up; the
// last item may be held in part.
std::expected<std::vector<CachePoint>, TraceError> pin_curve(const ReadSequence& sequence,
                                                             std::span<const Bytes> capacities,
                                                             const KeepGoing& keep_going = always);

// All of the above, of a whole session.
struct ReuseQuery {
  Grain grain = Grain::Part;
  std::vector<Bytes> capacities{};  // empty: so many, the last of the distinct bytes
  std::uint32_t points = 10;
};
struct Reuse {
  Grain grain = Grain::Part;
  std::uint64_t items = 0, reads = 0;
  Bytes bytes{}, distinct{};  // of ReadSequence
  ReuseHistogram histogram;
  std::vector<CachePoint> lru, belady, pin;  // at the same capacities
};
std::expected<Reuse, TraceError> reuse(const SessionReader& reader, const ReuseQuery& query,
                                       const KeepGoing& keep_going = always);
// Of a sequence whose items are `query.grain`.
std::expected<Reuse, TraceError> reuse(const ReadSequence& sequence, const ReuseQuery& query,
                                       const KeepGoing& keep_going = always);

}  // namespace tt
