// How the weights of a model that is larger than memory are kept, and how that works out: values
// without llama.cpp. Set at load (ModelOptions::memory) and while the model runs
// (GenerationQueue::set_memory()); docs/memory.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracer/format/model/ids.h"

namespace tt {

struct MemoryOptions {
  static constexpr std::uint64_t kOff = 0;
  // What the limit that applies (cgroup, RAM) leaves; follows it.
  static constexpr std::uint64_t kAuto = UINT64_MAX;

  // Bytes of weights that may be in memory. kOff: the kernel alone decides what is kept.
  std::uint64_t budget = kOff;
  bool pin = true;       // keep the same part of the weights in memory
  bool prefetch = true;  // read the rest before it is needed, and release it after use
  // With prefetch: read experts that are likely before the router has chosen. Off only to measure
  // what it gives.
  bool predict = true;
  friend bool operator==(const MemoryOptions&, const MemoryOptions&) = default;
};

struct MemoryState {
  enum class Phase : std::uint8_t {
    Off,          // no budget
    Learning,     // the order in which the weights are read is not known before the first step
    Fits,         // all weights fit: nothing to do
    Active,       // pins and reads ahead as planned
    Unavailable,  // cannot act on this model; `message` says why
  };
  Phase phase = Phase::Off;
  MemoryOptions options;
  std::string message;  // what was decided and why, in sentences

  // The limit that applies, and what is charged to it. In bytes, as everything below.
  std::uint64_t limit = 0, limit_used = 0;
  std::string limit_source;      // "cgroup v1 /group", "cgroup v2 /group", "RLIMIT_AS", "RAM"
  std::uint64_t lock_limit = 0;  // RLIMIT_MEMLOCK; UINT64_MAX: none

  // The plan.
  std::uint64_t budget = 0;   // that is planned with: at most options.budget, less under pressure
  std::uint64_t weights = 0;  // that a token can read; of experts all
  std::uint64_t pinned = 0, pinned_ranges = 0;      // weights that stay in memory
  std::uint64_t streamed = 0, streamed_ranges = 0;  // weights that are read for every token
  std::uint64_t experts = 0;       // bytes of routed experts, which are cached by use
  std::uint64_t expert_cache = 0;  // room for them
  std::uint64_t window = 0;        // read ahead of the running op at most
  double predicted_bytes_per_token = 0, predicted_tokens_per_second = 0;
  double plain_bytes_per_token = 0, plain_tokens_per_second = 0;  // predicted without a plan

  // What happens now.
  std::uint64_t locked = 0;          // of `pinned`; the rest is kept warm
  std::uint64_t resident = 0;        // pinned, window and experts that were read
  double disk_bytes_per_second = 0;  // measured while reading ahead; 0: not yet
  double compute_seconds = 0;        // a generated token without waiting for the disk; 0: unknown
  double tokens_per_second = 0;      // of the last generated tokens; 0: none yet
  double bytes_per_token = 0;        // read from the disk, of the last generated tokens
  std::uint64_t bytes_read = 0;      // by reading ahead, since the budget was set
  std::uint64_t late_ranges = 0;     // not yet in memory when their op ran
  std::uint64_t expert_hits = 0,
                expert_misses = 0;  // used slices that were, or were not, in memory
  // Experts that were predicted before the router chose, of those not in memory, and how many of
  // them it chose. Bytes that were read for predicted experts, and for those it did not choose.
  std::uint64_t experts_predicted = 0, experts_predicted_right = 0;
  std::uint64_t expert_bytes_ahead = 0, expert_bytes_wasted = 0;
  std::uint64_t reductions = 0;  // of the budget, because memory was needed elsewhere
};

const char* to_text(MemoryState::Phase);

// A part of a model file that the plan keeps in memory or reads for every token.
struct MemoryRange {
  std::uint32_t file = 0;
  std::uint64_t offset = 0, length = 0;  // bytes
  bool pinned = false;
  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

// What a budget would give. Speeds are 0 if the disk has not been measured.
struct MemoryPrediction {
  std::uint64_t budget = 0;
  double bytes_per_token = 0, tokens_per_second = 0;
  double plain_bytes_per_token = 0, plain_tokens_per_second = 0;  // without a plan
};

// Where the bytes of a tensor of a model file are now.
struct TensorResidency {
  std::string tensor;
  std::uint32_t file = 0;
  std::uint64_t offset = 0, length = 0;    // in the file
  bool mapped = false;                     // false: copied at load (repacked, or not mapped)
  std::uint64_t resident = 0;              // bytes of it in the page cache, if mapped
  std::uint64_t pinned = 0, streamed = 0;  // by the plan
};

struct MemoryMap {
  std::vector<TensorResidency> tensors;  // by file and offset
  // The kernel reports residency only to users who may write the file; to others every page is
  // reported as resident.
  bool residency_known = false;
  std::vector<MemoryRange> planned;  // by file and offset; empty without a plan
  // The parts of the tensors that are in memory, by file and offset; empty if not known. In units
  // of `resident_unit` bytes: a unit counts if at least half of it is in memory.
  std::vector<FileRange> resident;
  std::uint64_t resident_unit = 0;
  std::vector<MemoryPrediction> curve;  // by budget; empty before the first step
  bool disk_measured = false;           // false: the curve assumes 1 GB/s
};

}  // namespace tt
