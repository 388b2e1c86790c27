// Templates, allocations and steps as blobs (docs/trace-format.md) and back.
//
// Pure functions, any thread. Packing refuses what unpacking would refuse, so
// that a file never holds a blob that its own version cannot read. Unpacking
// takes any bytes: faults are values, and what it allocates is bounded by the
// limits below (at most 26 times the unpacked bytes, and 128 MiB of slot values).
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
inline constexpr std::size_t kMaxOpParts = 1024;                        // nodes and sources
inline constexpr std::size_t kMaxOpPairs = std::size_t{1} << 26;        // of parts, in all ops
inline constexpr std::size_t kMaxStepValues = std::size_t{16} << 20;    // slot values of one step
inline constexpr std::size_t kMaxStepFaults = std::size_t{1} << 20;     // page faults of one step

using Blob = std::vector<std::byte>;

// `fingerprint` is a plain column, not in the blob: unpacked templates have 0.
std::expected<Blob, DecodeError> pack_template(const GraphTemplate& graph);
std::expected<GraphTemplate, DecodeError> unpack_template(std::span<const std::byte> blob);

std::expected<Blob, DecodeError> pack_addresses(std::span<const std::uint64_t> addresses);
std::expected<std::vector<std::uint64_t>, DecodeError> unpack_addresses(
    std::span<const std::byte> blob);

// Of a step: op_ends (relative to first_op), slots, stats. The rest is columns.
std::expected<Blob, DecodeError> pack_step(const Step& step);
// Fills op_ends, slots and stats of `step`, whose first_op must be set.
std::expected<void, DecodeError> unpack_step(std::span<const std::byte> blob, Step& step);

// The faults of a step, times relative to `begin`, that of the step.
std::expected<Blob, DecodeError> pack_faults(const StepFaults& faults, Ns begin);
std::expected<std::vector<PageFault>, DecodeError> unpack_faults(std::span<const std::byte> blob,
                                                                 Ns begin);

// What a question over many steps needs of a step's blob: times as they are
// packed, lists as runs of numbers or as sets of small ones, and nothing else.
// Refilled without allocating.
struct StepOutline {
  struct Run {
    std::int64_t first = 0, delta = 0;
    std::uint64_t count = 0;
  };
  struct Slot {
    std::size_t values = 0;  // numbers in the list
    std::size_t first_run = 0, runs = 0;
    // Where a limit was asked for, instead of runs: a bit for each number below it that is in
    // the list, and how many these are.
    std::size_t first_word = 0, words = 0;
    std::uint64_t distinct = 0;
  };
  // Per executed op, from the end of the one before (the first: from first_op) to
  // its end, modulo 2^64 as everything in a blob.
  std::vector<std::uint64_t> op_ns;
  std::size_t ops = 0;          // that have a time
  std::size_t times_bytes = 0;  // at the blob's begin, which hold op_ns
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
// `limits` are those of the first slots; 0, or none: as runs.
std::expected<void, DecodeError> unpack_outline(std::span<const std::byte> blob, StepOutline& out,
                                                OutlineTimes times = OutlineTimes::Unpack,
                                                std::span<const std::uint32_t> limits = {});
// From these bytes alone.
std::expected<void, DecodeError> unpack_times(std::span<const std::byte> times,
                                              std::vector<std::uint64_t>& op_ns);

}  // namespace tt
