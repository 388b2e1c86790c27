// What memory would save of the reads of weights: how far apart the reads of the
// same bytes are, and what a cache of so many bytes would have kept under three
// policies. Pure functions, any thread.
//
// What a cache holds are items: whole weight tensors, or, as models larger than
// memory want it, the parts that are read by themselves (a routed expert's slice,
// a row of the embedding). A read is one op reading one item; that the weights
// were repacked or copied at load makes no difference, it is the file's bytes
// that a cache would hold.
#pragma once

#include <cstdint>
#include <expected>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "analysis/page.h"
#include "tracer/format/session_reader.h"

namespace tt {

enum class Grain : std::uint8_t { Tensor, Part };

struct ReuseItem {
  std::string tensor;
  std::int32_t expert = -1;  // Grain::Part: of an expert's slice
  FileRange file;            // its length is the item's size
  LayerId layer = kNoLayer;
  std::uint64_t reads = 0;
  friend bool operator==(const ReuseItem&, const ReuseItem&) = default;
};

// The reads in the order of the ops. 4 bytes a read.
struct ReadSequence {
  std::vector<ReuseItem> items;      // in order of their first read
  std::vector<std::uint32_t> reads;  // indices into items

  std::uint64_t size(std::uint32_t item) const { return items[item].file.length; }
  Bytes bytes() const;           // of all reads
  Bytes distinct_bytes() const;  // of all items: with so much, only first reads remain
};

// Of the steps `steps` (from, limit). With Grain::Part overlapping ranges are
// items of their own: the row that an embedding reads, the whole of it that a
// tied output reads.
std::expected<ReadSequence, TraceError> weight_reads(const SessionReader& reader, PageRange steps,
                                                     Grain grain,
                                                     const KeepGoing& keep_going = always);

// Per read, the least capacity of an LRU cache that would have saved it: the
// sizes of the distinct items read since this one was, its own included.
// kNever: a first read. Mattson's stack in O(log n) a read.
inline constexpr Bytes kNever{std::numeric_limits<std::uint64_t>::max()};
std::expected<std::vector<Bytes>, TraceError> reuse_distances(const ReadSequence& sequence,
                                                              const KeepGoing& keep_going);
std::vector<Bytes> reuse_distances(const ReadSequence& sequence);

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
ReuseHistogram reuse_histogram(const ReadSequence& sequence, std::span<const Bytes> distances);

// What a cache of `capacity`, empty at the start, saves of the sequence.
struct CachePoint {
  Bytes capacity{};
  std::uint64_t reads = 0;  // wholly saved
  Bytes bytes{};            // saved, of reads that are saved in part, too
  friend bool operator==(const CachePoint&, const CachePoint&) = default;
};

// Least recently used goes first; items are held whole, and one that is larger
// than the cache drives out everything. Exact at every capacity, from one pass.
std::vector<CachePoint> lru_curve(const ReadSequence& sequence, std::span<const Bytes> distances,
                                  std::span<const Bytes> capacities);

// The best that any cache could do which knows the future (Belady): the bytes
// with the farthest next read go first, items may be held in part. O(n log n)
// for each capacity.
std::expected<std::vector<CachePoint>, TraceError> belady_curve(const ReadSequence& sequence,
                                                                std::span<const Bytes> capacities,
                                                                const KeepGoing& keep_going);
std::vector<CachePoint> belady_curve(const ReadSequence& sequence,
                                     std::span<const Bytes> capacities);

// Items in the order in which they are pinned: what `reads` has most often, then what
// the sequence has first. An item is read whole, so that this saves most per byte held.
std::vector<std::uint32_t> most_read_first(const ReadSequence& sequence,
                                           std::span<const std::uint32_t> reads);

// What is read most often is kept from its first read on and never given up; the
// last item may be held in part.
std::vector<CachePoint> pin_curve(const ReadSequence& sequence, std::span<const Bytes> capacities);

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
