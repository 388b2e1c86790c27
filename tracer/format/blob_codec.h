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

#include "tracer/format/byte_codec.h"
#include "tracer/format/graph_template.h"
#include "tracer/format/step.h"

namespace tt {

inline constexpr std::size_t kMaxUnpackedBytes = std::size_t{16} << 20;  // template, allocation
inline constexpr std::size_t kMaxStepValues = std::size_t{16} << 20;     // slot values of one step

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

}  // namespace tt
