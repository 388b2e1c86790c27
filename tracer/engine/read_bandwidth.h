// How fast the processors of this machine read memory: the limit of a model whose weights do not
// fit into a cache. Measured once per machine and number of threads, and stored in a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace tt {

// Size of the largest cache of the first processor; 0: not known. Tests replace `root`.
std::uint64_t last_cache_bytes(const std::filesystem::path& root = "/");

// Bytes per second that `threads` threads read together, of a buffer that is larger than the last
// cache. Takes about half a second and the memory of the buffer (128 MiB to 1 GiB). nullopt: there
// is not enough memory, or other programs disturbed all tries.
std::optional<std::uint64_t> measure_read_bandwidth(unsigned threads);

// The stored measurement of this machine with this number of threads. Otherwise that of this
// process, which measures once, and stores it in `file` (created with its folder; a file that
// cannot be written is ignored). nullopt: it could not be measured. Any thread.
std::optional<std::uint64_t> read_bandwidth(const std::filesystem::path& file, unsigned threads);

}  // namespace tt
