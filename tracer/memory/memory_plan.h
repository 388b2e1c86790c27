// Decides which weights stay in memory and which are read ahead of the running op, for a budget.
//
// A decode reads all dense weights of the model once, in the same order for every token. If they
// do not fit, the kernel's choice (about: the least recently used page goes first) keeps almost
// nothing that is used again before it goes: nearly all is read again for each token. The best
// that a cache of this size can do is to keep the same part always; only the rest is read. The
// part is taken from the begin of every weight, the same share of each, so that between any two
// reads there is work to overlap with.
//
// A dense byte is read once per token, a byte of an expert only if the expert is chosen. So dense
// weights are pinned first, and experts are cached in what remains.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tracer/memory/read_order.h"

namespace tt {

inline constexpr std::uint64_t kPageBytes = 4096;

// Whole pages of a mapped file.
struct PageRange {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;   // in the file
  std::uint64_t address = 0;  // in memory
  std::uint64_t length = 0;
  friend bool operator==(const PageRange&, const PageRange&) = default;
};

struct PlannedRange {
  PageRange pages;
  std::uint32_t weight = 0;  // index into `weights` of plan_memory()
  bool pinned = false;       // else streamed: read before each use and released after it
  friend bool operator==(const PlannedRange&, const PlannedRange&) = default;
};

struct MemoryPlan {
  enum class Kind : std::uint8_t { Fits, TooSmall, Act };
  Kind kind = Kind::Fits;
  std::vector<PlannedRange> ranges;  // of the dense weights, in the order of `weights`
  std::uint64_t weights = 0, pinned = 0, streamed = 0;
  std::uint64_t experts = 0, expert_cache = 0;
  std::uint64_t window = 0;  // bytes to read ahead at most
  double bytes_per_token = 0, tokens_per_second = 0;
  double plain_bytes_per_token = 0, plain_tokens_per_second = 0;
  std::string reason;  // sentences
};

struct PlanInput {
  std::span<const WeightRange> weights;  // distinct, in the order of their first use
  std::uint64_t expert_bytes = 0;        // of all experts
  std::uint64_t expert_bytes_per_token = 0;
  std::uint64_t budget = 0;
  bool pin = true, prefetch = true;
  double disk_bytes_per_second = 0;  // 0: unknown; tokens/s are then not predicted
  double compute_seconds = 0;        // of a token; 0: unknown, the disk alone counts
};

// Pure. Ranges that share a page with another weight do not contain it if it is streamed.
MemoryPlan plan_memory(const PlanInput& input);

// Smallest range of whole pages that contains the weight, and largest that it contains (may be
// empty).
PageRange pages_around(const WeightRange& weight);
PageRange pages_within(const WeightRange& weight);

}  // namespace tt
