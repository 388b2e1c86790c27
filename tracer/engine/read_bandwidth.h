// How fast the processors of this machine read memory: the limit of a model whose weights do not
// fit into a cache. Measured once per machine and number of threads, and stored in a file.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tt {

// Size of the largest cache of the first processor; 0: not known. Tests replace `root`.
std::uint64_t last_cache_bytes(const std::filesystem::path& root = "/");

// Why it is not known.
enum class NoBandwidth : std::uint8_t {
  SmallModel,    // the model is not larger than the last cache, so it was not measured
  NoFolder,      // there is no folder to store it
  LittleMemory,  // the buffer is larger than a quarter of the free memory
  Busy,          // other programs used the processors in every try
  NotStored,     // no measurement is stored
};
const char* to_text(NoBandwidth);  // small_model, no_folder, little_memory, busy, not_stored

// Bytes per second that `threads` threads read together.
using Bandwidth = std::expected<std::uint64_t, NoBandwidth>;

// Reads a buffer that is larger than the last cache. Takes about half a second and the memory of
// the buffer (128 MiB to 1 GiB).
Bandwidth measure_read_bandwidth(unsigned threads);

// The stored measurement of this machine with this number of threads.
Bandwidth stored_read_bandwidth(const std::filesystem::path& file, unsigned threads);
// Adds a measurement to the file and creates its folder; without an error if that is impossible.
void store_read_bandwidth(const std::filesystem::path& file, unsigned threads,
                          std::uint64_t bytes_per_second);

// The same; otherwise that of this process, which measures once, and stores it in `file` (created
// with its folder; a file that cannot be written is ignored). A measurement that failed is tried
// again by the next call. Any thread.
Bandwidth read_bandwidth(const std::filesystem::path& file, unsigned threads);

// The facts of a session: "host.last_cache_bytes", and "host.read_bandwidth" (bytes per second)
// with "host.read_bandwidth_threads", or "host.no_read_bandwidth" with the reason.
std::vector<std::pair<std::string, std::string>> bandwidth_facts(const Bandwidth& bandwidth,
                                                                 unsigned threads);

}  // namespace tt
