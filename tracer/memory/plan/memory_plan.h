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

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tracer/memory/plan/weight_order.h"

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

// Reads by page faults. The kernel reads the pages around the missing one, too.
struct FaultReads {
  double bytes = 0;             // of one fault; 0: unknown, as if it read what is used
  double bytes_per_second = 0;  // one at a time; 0: unknown, as fast as blocks
  double map_seconds = 0;       // per byte that is used: time to map pages that were read before
  bool with_computing = false;  // the times are those of whole steps, which compute, too
};

// Bytes per second of a plan's reads. 0: unknown, as fast as blocks.
struct ReadSpeeds {
  double blocks = 0;        // many in flight; 0: unknown, tokens/s are then not predicted
  double pages = 0;         // the same, page by page (ModelPages)
  double page_seconds = 0;  // of a processor, per byte of `pages`
  double experts = 0;       // one after the other: they are known when the router has chosen
  FaultReads faults{};
  // The same for a disk that is `factor` times faster.
  ReadSpeeds times(double factor) const;
};

// Bytes of a token.
struct TokenReads {
  double blocks = 0, pages = 0, experts = 0;
  double faults = 0, faults_used = 0;  // read by page faults, and used of it
};
// Tokens per second. Reading ahead overlaps with computing, but for the processor time of reading
// pages; computing waits for experts and for page faults. 0: the speed of the disk, or the time, is
// unknown.
double token_rate(const TokenReads& reads, double compute_seconds, const ReadSpeeds& speeds);

struct MemoryPlan {
  enum class Kind : std::uint8_t { Fits, TooSmall, Act };
  Kind kind = Kind::Fits;
  std::vector<PlannedRange> ranges;  // of the dense weights, by group
  // The group of each of the dense weights. Weights that are too small to be read alone are in one
  // group with their neighbours in the file; the others are groups of their own. Groups are in the
  // order of their first use.
  std::vector<std::uint32_t> group_of;
  std::uint64_t weights = 0, pinned = 0, streamed = 0;
  std::uint64_t streamed_blocks = 0;  // of `streamed`: read block by block
  std::uint64_t experts = 0, expert_cache = 0;
  std::uint64_t window = 0;       // bytes to read ahead at most
  TokenReads reads, plain_reads;  // of a token; plain: of page faults alone
  double bytes_per_token = 0, tokens_per_second = 0;
  double plain_bytes_per_token = 0, plain_tokens_per_second = 0;
  std::string reason;  // sentences
};

// Time of reading that the window covers: the latency of a busy disk. What is in the window cannot
// be pinned, so it begins small and grows where that makes less ranges late (MemoryManager).
inline constexpr double kWindowSeconds = 0.01, kMaxWindowSeconds = 0.08;
inline constexpr double kAssumedDiskSpeed = 1e9;  // bytes per second, before it is measured
// While a step runs, what it has done is looked at again after this time.
inline constexpr std::chrono::microseconds kPollInterval{100};
// At least so many bytes, where the budget allows it: reads in flight, and what is being used.
inline constexpr std::uint64_t kDefaultWindow = 16U << 20;

struct PlanInput {
  std::span<const WeightRange> weights;  // distinct, in the order of their first use
  std::uint64_t expert_bytes = 0;        // of all experts
  std::uint64_t expert_bytes_per_token = 0;
  std::uint64_t budget = 0;
  bool pin = true, prefetch = true;
  ReadSpeeds speeds{};
  double compute_seconds = 0;  // of a token; 0: unknown, the disk alone counts
  double window_seconds = kWindowSeconds;
  std::uint64_t block = 0;  // bytes; 0: there are no blocks
  // Bytes that page faults read per token if all weights have `room` bytes of memory, and the
  // ranges are always in it (FaultReplay). Empty: what is used.
  std::function<double(std::uint64_t room, std::span<const FileRange> kept)> faulted{};
  // Share of the used experts that a cache of so many bytes has. Empty: as for uniform routing.
  std::function<double(std::uint64_t)> expert_hit_rate{};
};

// Pure. Ranges that share a page with another weight do not contain it if it is streamed.
MemoryPlan plan_memory(const PlanInput& input);

// Smallest range of whole pages that contains the weight, and largest that it contains (may be
// empty).
MappedPages pages_around(const WeightRange& weight);
MappedPages pages_within(const WeightRange& weight);

}  // namespace tt
