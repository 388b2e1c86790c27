// Evaluates pinning the most used experts in memory: the bytes of expert slices that a given
// capacity saves with pinning and with an LRU cache (see analysis/weights/reuse.h). Pure
// functions, any thread.
//
// A slice is one expert's part of one weight (gate, up or down). Choosing slices by all reads
// (hindsight) overestimates pinning. So it is also tested: slices are chosen by the first
// half of the reads and evaluated on the second half, compared with an LRU cache that has run
// since the beginning.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "analysis/weights/reuse.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// The subsequence of the reads of expert slices.
std::expected<ReadSequence, TraceError> expert_reads(
    const ReadSequence& sequence, const ContinueCheck& keep_going = never_cancel);

// A slot holds all weights of one expert of one layer (docs/experts.md).
struct SlotSize {
  LayerId layer;
  Bytes bytes{};
  friend bool operator==(const SlotSize&, const SlotSize&) = default;
};

struct PinPoint {
  Bytes capacity{};
  // Bytes saved over all reads. Pinned and best use hindsight; partially held items count.
  Bytes lru{}, pinned{}, best{};
  std::uint64_t slices = 0;  // slices that fit completely, most read first
  // Bytes saved over the second half of the reads.
  Bytes tried_lru{}, tried_pinned{};
  friend bool operator==(const PinPoint&, const PinPoint&) = default;
};

struct ExpertPinning {
  Bytes weights_read{};  // bytes of all weight reads
  Bytes read{};          // bytes of expert slice reads; 0: the model has no experts
  Bytes distinct{};      // total size of the slices that were read
  Bytes tried{};         // bytes of the second half of the slice reads
  std::uint64_t reads = 0, slices = 0;
  std::vector<PinPoint> curve;
  std::vector<SlotSize> slots;  // ascending layers; weights of which no slice was read are missing

  // Slots that a budget buys in every layer, the same number in each.
  std::uint64_t slots_per_layer(Bytes budget) const;

  // The point where tested pinning saves most compared with LRU; null: it never saves more.
  const PinPoint* best_gain() const;
};

// For a sequence with Grain::Part, or for all steps of a session. If `capacities` is empty,
// tenths of `distinct` are used.
std::expected<ExpertPinning, TraceError> expert_pinning(
    const ReadSequence& sequence, std::span<const Bytes> capacities,
    const ContinueCheck& keep_going = never_cancel);
std::expected<ExpertPinning, TraceError> expert_pinning(
    const SessionReader& reader, std::span<const Bytes> capacities,
    const ContinueCheck& keep_going = never_cancel);

Fields<ExpertPinning> fields_of(const ExpertPinning*);

}  // namespace tt
