// How fast the processors of this machine read memory: the limit of a model whose weights do not
// fit into a cache.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tracer/engine/machine_rate.h"

namespace tt {

// Size of the largest cache of the first processor; 0: not known. Tests replace `root`.
std::uint64_t last_cache_bytes(const std::filesystem::path& root = "/");

// Bytes per second that `threads` threads read together, of a buffer that is larger than the last
// cache. Takes about half a second and the memory of the buffer (128 MiB to 1 GiB).
MachineRate measure_read_bandwidth(unsigned threads);

}  // namespace tt
