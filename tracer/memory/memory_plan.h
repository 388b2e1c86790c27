// Decides which weights stay in memory and which are read ahead of the running op, for a budget.
//
// A decode reads all dense weights of the model once, in the same order for every token. If they
// do not fit, the kernel's choice (about: the least recently used page goes first) keeps almost
// nothing that is used again before it goes: nearly all is read again for each token. The best
// that a cache of this size can do is to keep the same part always; only the rest is read. It is
// spread over the weights, so that between any two reads there is work to overlap with.
//
// Where the system reads blocks (ModelPages), whole blocks of the weights are read, and the pages
// beside them stay. Only if that is not enough, or there are no blocks, single pages are read: the
// same share of each weight.
//
// A dense byte is read once per token, a byte of an expert only if the expert is chosen. So dense
// weights are pinned first, and experts are cached in what remains.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tracer/memory/weight_order.h"

namespace tt {

std::uint64_t page_bytes();  // of the system

// Whole pages of a mapped file.
struct MappedPages {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;   // in the file
  std::uint64_t address = 0;  // in memory
  std::uint64_t length = 0;
  friend bool operator==(const MappedPages&, const MappedPages&) = default;
};

struct PlannedRange {
  MappedPages pages;
  std::uint32_t group = 0;  // of weights; see MemoryPlan::group_of
  bool pinned = false;      // else streamed: read before each use and released after it
  friend bool operator==(const PlannedRange&, const PlannedRange&) = default;
};

struct MemoryPlan {
  enum class Kind : std::uint8_t { Fits, TooSmall, Act };
  Kind kind = Kind::Fits;
  std::vector<PlannedRange> ranges;  // of the dense weights, by group
  // The group of each of the dense weights. Weights that are too small to be read alone are in one
  // group with their neighbours in the file; the others are groups of their own. Groups are in the
  // order of their first use.
  std::vector<std::uint32_t> group_of;
  std::uint64_t weights = 0, pinned = 0, streamed = 0;
  std::uint64_t experts = 0, expert_cache = 0;
  std::uint64_t window = 0;  // bytes to read ahead at most
  double bytes_per_token = 0, tokens_per_second = 0;
  double plain_bytes_per_token = 0, plain_tokens_per_second = 0;
  std::string reason;  // sentences
};

// Time of reading that the window covers: the latency of a busy disk. What is in the window cannot
// be pinned, so it begins small and grows where that makes less ranges late (MemoryManager).
inline constexpr double kWindowSeconds = 0.01, kMaxWindowSeconds = 0.08;

// Reads by page faults, one at a time. The kernel reads the pages around the missing one, too.
struct FaultReads {
  double bytes = 0;             // of one fault; 0: unknown, as if it read what is used
  double bytes_per_second = 0;  // 0: unknown, as if they were as fast as the disk
};

struct PlanInput {
  std::span<const WeightRange> weights;  // distinct, in the order of their first use
  std::uint64_t expert_bytes = 0;        // of all experts
  std::uint64_t expert_bytes_per_token = 0;
  double expert_slices_per_token =
      0;  // parts of tensors, one per expert that an op uses; 0: unknown
  std::uint64_t budget = 0;
  bool pin = true, prefetch = true;
  double disk_bytes_per_second = 0;  // 0: unknown; tokens/s are then not predicted
  double compute_seconds = 0;        // of a token; 0: unknown, the disk alone counts
  double window_seconds = kWindowSeconds;
  std::uint64_t block = 0;  // bytes; 0: there are no blocks
  FaultReads faults{};
  // Share of the used experts that a cache of so many bytes has. Empty: as for uniform routing.
  std::function<double(std::uint64_t)> expert_hit_rate{};
};

// Bytes that a token reads from the disk, and bytes per second. Reading ahead overlaps with
// computing. Computing waits for experts, which are known when the router has chosen, and for what
// page faults read; these come one after the other.
struct TokenReads {
  double ahead = 0, waited_for = 0;
};
struct ReadRates {
  double ahead = 0;       // 0: unknown
  double waited_for = 0;  // 0: the same
};
// Tokens per second. 0: the speed of the disk, or the time, is unknown.
double token_rate(TokenReads reads, double compute_seconds, ReadRates rates);

// Pure. Ranges that share a page with another weight do not contain it if it is streamed.
MemoryPlan plan_memory(const PlanInput& input);

// Smallest range of whole pages that contains the weight, and largest that it contains (may be
// empty).
MappedPages pages_around(const WeightRange& weight);
MappedPages pages_within(const WeightRange& weight);

}  // namespace tt
