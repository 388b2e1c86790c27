// The weights that a graph reads from the mapped model files, in the order in which it reads
// them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tracer/format/access/access.h"
#include "tracer/format/model/graph_template.h"

namespace tt {

// A weight, or the part of it that an op reads, in a file and in memory.
struct WeightRange {
  FileRange file;
  std::uint64_t address = 0;
  friend bool operator==(const WeightRange&, const WeightRange&) = default;
};

struct WeightUse {
  WeightRange range;
  OpId op;
  friend bool operator==(const WeightUse&, const WeightUse&) = default;
};

// The slices of a weight that the router of a layer selects.
struct ExpertUse {
  WeightRange range;  // of all slices
  OpId op;
  std::uint64_t slice = 0, stride = 0;  // bytes of a slice, and from one to the next
  std::uint32_t experts = 0;
  SlotId list = kNoSlot;  // of the selected experts, in recorded steps
  // The list of selected experts: 32-bit numbers in host memory, `per_token` for each token, the
  // lists of consecutive tokens `token_stride` bytes apart. Complete when more than `routed_by`
  // ops have finished. Address 0: not in host memory.
  std::uint64_t list_address = 0;
  std::uint32_t per_token = 0;
  std::uint32_t tokens = 0;
  std::uint64_t token_stride = 0;
  OpId routed_by;
  friend bool operator==(const ExpertUse&, const ExpertUse&) = default;
};

struct WeightOrder {
  std::vector<WeightUse> weights;   // read whole; by op
  std::vector<ExpertUse> experts;   // by op
  std::vector<WeightRange> lookup;  // only some rows are read: embeddings
  friend bool operator==(const WeightOrder&, const WeightOrder&) = default;
};

// Makes the weights of a graph as if they had been mapped, also those that were repacked or copied:
// a model with a memory budget is loaded so. Returns the address of each tensor: not that of the
// process, but with the same place in its page. Weights on a device stay where they are. Pure.
std::vector<std::uint64_t> map_weights(GraphTemplate& graph);

// `accesses`: accesses_of(graph). `addresses`: per tensor. Weights elsewhere (repacked, on a
// device) are not in it. Pure; any thread.
WeightOrder weight_order(const GraphTemplate& graph, std::span<const Access> accesses,
                         std::span<const std::uint64_t> addresses);

}  // namespace tt
