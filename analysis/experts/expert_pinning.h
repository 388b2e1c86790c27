// Whether it would help to keep the most used experts in memory: the bytes of
// experts' slices that so much memory saves, pinned and as a cache (LRU), by
// analysis/weights/reuse.h. Pure functions, any thread.
//
// A slice is one expert's part of one weight (gate, up or down). What is chosen
// with hindsight flatters; so pinning is tried, too: slices are chosen by the
// first half of the reads and held during the second, beside an LRU cache that
// has run since the beginning.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/weights/reuse.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// The part of a sequence that reads slices of experts.
std::expected<ReadSequence, TraceError> expert_reads(const ReadSequence& sequence,
                                                     const KeepGoing& keep_going = always);

struct PinPoint {
  Bytes capacity{};
  // Saved of all reads; pinned and best with hindsight, bytes held in part count.
  Bytes lru{}, pinned{}, best{};
  std::uint64_t slices = 0;  // that fit whole, the most read first
  // Saved of the second half of the reads.
  Bytes tried_lru{}, tried_pinned{};
  friend bool operator==(const PinPoint&, const PinPoint&) = default;
};

struct ExpertPinning {
  Bytes weights_read{};  // by all reads of weights
  Bytes read{};          // by reads of experts' slices; 0: the model has no experts
  Bytes distinct{};      // of the slices that were read
  Bytes tried{};         // by the second half of the reads
  std::uint64_t reads = 0, slices = 0;
  std::vector<PinPoint> curve;

  // The point at which trying it gained most over LRU; null: it nowhere did.
  const PinPoint* best_gain() const;
};

// Of all reads of a sequence with Grain::Part, or of all steps. Without capacities: at
// tenths of `distinct`.
std::expected<ExpertPinning, TraceError> expert_pinning(const ReadSequence& sequence,
                                                        std::span<const Bytes> capacities,
                                                        const KeepGoing& keep_going = always);
std::expected<ExpertPinning, TraceError> expert_pinning(const SessionReader& reader,
                                                        std::span<const Bytes> capacities,
                                                        const KeepGoing& keep_going = always);

}  // namespace tt
