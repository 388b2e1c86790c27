// The time that a token computes, from ops that may all have waited for the disk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tracer/memory/plan/weight_order.h"

namespace tt {

// Bytes of weights that each of `ops` ops reads; experts as often as they are used.
std::vector<std::uint64_t> weight_bytes_of_ops(const WeightOrder& order, std::size_t ops);

// ns. `op_ns`: the least time that each op took, of steps with the same graph. An op that takes
// much longer for its weights than the faster ones do for as many bytes waited in each of these
// steps; as computing counts what those would take. `weight_bytes`: empty, or of each op. Pure.
std::int64_t compute_time(std::span<const std::int64_t> op_ns,
                          std::span<const std::uint64_t> weight_bytes);

}  // namespace tt
