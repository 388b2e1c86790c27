// Selects the weights to pin if memory is smaller than the weights of a session: pin_curve()
// of analysis/weights/reuse.h with tensor names. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/weights/reuse.h"

namespace tt {

// The pinned part of one tensor: complete items of the sequence, and the part of the last
// item that still fits. Items that are read only once save nothing and are left out.
struct PinnedWeight {
  std::string tensor;
  LayerId layer = kNoLayer;
  std::vector<std::int32_t> experts;  // pinned slices, ascending; empty: not an expert weight
  Bytes held{};
  std::uint64_t reads = 0;  // reads of the pinned items
  Bytes saved{};            // bytes of these reads served from memory
  friend bool operator==(const PinnedWeight&, const PinnedWeight&) = default;
};

struct PinPlan {
  Bytes memory{};                     // available memory
  Bytes held{}, saved{};              // totals over `weights`
  std::vector<PinnedWeight> weights;  // most bytes saved per byte held first
  friend bool operator==(const PinPlan&, const PinPlan&) = default;
};
PinPlan pin_plan(const ReadSequence& sequence, Bytes memory);

// The parts that are read separately, in the order in which pinning keeps them: a memory of
// `memory` bytes holds a part and all before it, and serves `saved` bytes of reads.
struct PinnedPart {
  std::string tensor;
  LayerId layer = kNoLayer;
  std::int32_t expert = -1;  // -1: not an expert slice
  Bytes size{};
  std::uint64_t reads = 0;
  Bytes memory{}, saved{};
};
std::expected<Page<PinnedPart>, TraceError> pin_order(
    const SessionReader& reader, PageRange range, const ContinueCheck& keep_going = never_cancel);
Fields<Page<PinnedPart>> fields_of(const Page<PinnedPart>*);

// Human-readable names of the plan's weights, grouped by equal layers or experts:
// "attn_q.weight, attn_v.weight of layers 0-3", "experts 2, 5-7 of layer 1
// (ffn_down_exps.weight)", "output.weight".
std::vector<std::string> names_of(const PinPlan& plan);

// Formats ascending numbers as ranges: "0-3, 5".
std::string runs_text(const std::vector<std::int32_t>& ascending);

}  // namespace tt
