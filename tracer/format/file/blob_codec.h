// Encodes templates, allocations and steps as blobs and decodes them
// (docs/trace-format.md).
//
// Pure functions, any thread. Packing rejects what unpacking would reject, so that a file
// never contains a blob that its own version cannot read. Unpacking accepts untrusted
// bytes: errors are returned as values, and allocations are bounded by the limits below
// (at most 26 times the unpacked bytes, 128 MiB of slot values, and twice 64 MiB of captured
// values).
#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <vector>

#include "tracer/format/file/byte_codec.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/step.h"

namespace tt {

inline constexpr std::size_t kMaxUnpackedBytes = std::size_t{4} << 20;  // template, allocation
inline constexpr std::size_t kMaxOpParts = 1024;                        // per op: nodes and sources
inline constexpr std::size_t kMaxOpPairs = std::size_t{1} << 26;        // pairs of parts, all ops
inline constexpr std::size_t kMaxStepValues = std::size_t{16} << 20;    // slot values of one step
inline constexpr std::size_t kMaxStepFaults = std::size_t{1} << 20;     // page faults of one step

inline constexpr std::size_t kMaxResidentRanges = std::size_t{1} << 20;  // of one step
// Captured by one step.
inline constexpr std::size_t kMaxCapturedValues = std::size_t{16} << 20;
inline constexpr std::size_t kMaxCapturedOutputs = std::size_t{64} << 10;

// Splits of one step, and copies of all of them.
inline constexpr std::size_t kMaxStepSplits = std::size_t{64} << 10;
inline constexpr std::size_t kMaxStepCopies = std::size_t{256} << 10;
inline constexpr std::size_t kMaxBackends = 256;

using Blob = std::vector<std::byte>;

// `fingerprint` is a column of its own, not in the blob: it is 0 in unpacked templates.
std::expected<Blob, DecodeError> pack_template(const GraphTemplate& graph);
std::expected<GraphTemplate, DecodeError> unpack_template(std::span<const std::byte> blob);

std::expected<Blob, DecodeError> pack_addresses(std::span<const std::uint64_t> addresses);
std::expected<std::vector<std::uint64_t>, DecodeError> unpack_addresses(
    std::span<const std::byte> blob);

// Packs op_ends (relative to first_op), slots and stats of a step. The rest is columns.
std::expected<Blob, DecodeError> pack_step(const Step& step);
// Fills op_ends, slots and stats of `step`, whose first_op must be set.
std::expected<void, DecodeError> unpack_step(std::span<const std::byte> blob, Step& step);

// Page faults of a step; times are relative to `begin`, the step's begin.
std::expected<Blob, DecodeError> pack_faults(const StepFaults& faults, Ns begin);
std::expected<std::vector<PageFault>, DecodeError> unpack_faults(std::span<const std::byte> blob,
                                                                 Ns begin);

// The ranges of StepResidency, by file and offset.
std::expected<Blob, DecodeError> pack_ranges(std::span<const FileRange> ranges);
std::expected<std::vector<FileRange>, DecodeError> unpack_ranges(std::span<const std::byte> blob);

// The outputs of StepValues.
std::expected<Blob, DecodeError> pack_values(std::span<const OutputValues> outputs);
std::expected<std::vector<OutputValues>, DecodeError> unpack_values(
    std::span<const std::byte> blob);

// The backends and splits of StepSplits; times are relative to `begin`, the step's begin.
std::expected<Blob, DecodeError> pack_splits(const StepSplits& splits, Ns begin);
// `step` is not set. Indices of backends are checked, those of ops and tensors are not.
std::expected<StepSplits, DecodeError> unpack_splits(std::span<const std::byte> blob, Ns begin);

// The part of a step's blob that queries over many steps need: times as they are packed, and
// lists as runs of numbers or as bit sets. Reused between steps without allocating.
struct StepOutline {
  struct Run {
    std::int64_t first = 0, delta = 0;
    std::uint64_t count = 0;
  };
  struct Slot {
    std::size_t values = 0;  // numbers in the list
    std::size_t first_run = 0, runs = 0;
    // With a limit, instead of runs: a bit for each number below the limit that is in the list,
    // and the number of bits set.
    std::size_t first_word = 0, words = 0;
    std::uint64_t distinct = 0;
  };
  // Duration of each executed op: from the end of the previous op (first op: from first_op)
  // to its own end, modulo 2^64 like all numbers in a blob.
  std::vector<std::uint64_t> op_ns;
  std::size_t ops = 0;          // ops with a time
  std::size_t times_bytes = 0;  // bytes at the begin of the blob that contain op_ns
  std::vector<Slot> slots;
  std::vector<Run> runs;
  std::vector<std::uint64_t> words;

  std::span<const Run> runs_of(const Slot& slot) const {
    return std::span(runs).subspan(slot.first_run, slot.runs);
  }
  std::span<const std::uint64_t> words_of(const Slot& slot) const {
    return std::span(words).subspan(slot.first_word, slot.words);
  }
};
enum class OutlineTimes : bool { Skip, Unpack };  // Skip: op_ns is left empty
// `limits[i]` is the limit of slot i; 0 or missing: decode as runs.
std::expected<void, DecodeError> unpack_outline(std::span<const std::byte> blob, StepOutline& out,
                                                OutlineTimes times = OutlineTimes::Unpack,
                                                std::span<const std::uint32_t> limits = {});
// Decodes op_ns from the first `times_bytes` bytes of a blob.
std::expected<void, DecodeError> unpack_times(std::span<const std::byte> times,
                                              std::vector<std::uint64_t>& op_ns);

}  // namespace tt
