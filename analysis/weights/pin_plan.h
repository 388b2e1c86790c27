// Which weights to keep where there is less memory than a session's reads need:
// pin_curve() of analysis/weights/reuse.h with names. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/weights/reuse.h"

namespace tt {

// What is held of one tensor: whole items of the sequence, and of the last one that is
// taken what still fits. Items that are read once save nothing and are left out.
struct PinnedWeight {
  std::string tensor;
  LayerId layer = kNoLayer;
  std::vector<std::int32_t> experts;  // whose slices are held, ascending; empty: not of experts
  Bytes held{};
  std::uint64_t reads = 0;  // of what is held
  Bytes saved{};            // of these reads
  friend bool operator==(const PinnedWeight&, const PinnedWeight&) = default;
};

struct PinPlan {
  Bytes memory{};                     // that there is
  Bytes held{}, saved{};              // of all weights
  std::vector<PinnedWeight> weights;  // what saves most per byte first
  friend bool operator==(const PinPlan&, const PinPlan&) = default;
};
PinPlan pin_plan(const ReadSequence& sequence, Bytes memory);

// The plan's weights as people name them, those of the same layers, or the same experts,
// together: "attn_q.weight, attn_v.weight of layers 0-3", "experts 2, 5-7 of layer 1
// (ffn_down_exps.weight)", "output.weight".
std::vector<std::string> names_of(const PinPlan& plan);

// "0-3, 5".
std::string runs_text(const std::vector<std::int32_t>& ascending);

}  // namespace tt
