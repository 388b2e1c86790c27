// What this machine does per second: how fast it reads memory (read_bandwidth.h), how fast it
// computes (compute_peak.h). Each is measured once per machine and number of threads, and stored in
// a file of its own.
#pragma once

#include <time.h>

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tt {

// Why it is not known.
enum class NotMeasured : std::uint8_t {
  SmallModel,    // the model is not larger than the last cache, so it was not measured
  NoFolder,      // there is no folder to store it
  LittleMemory,  // there is too little free memory for the measurement
  Busy,          // other programs used the processors in every try
  NotStored,     // no measurement is stored
};
const char* to_text(NotMeasured);  // small_model, no_folder, little_memory, busy, not_stored

// Bytes or operations per second, of all threads together.
using MachineRate = std::expected<std::uint64_t, NotMeasured>;
using MeasureRate = std::function<MachineRate(unsigned threads)>;

// The files of these rates in the folder of what was measured of the machine.
std::filesystem::path read_bandwidth_file(const std::filesystem::path& folder);
std::filesystem::path compute_peak_file(const std::filesystem::path& folder);

// The highest stored measurement of this machine with this number of threads; NotStored also if it
// cannot be right, because one thread alone is clearly faster.
MachineRate stored_rate(const std::filesystem::path& file, unsigned threads);
// Adds a measurement to the file and creates its folder; without an error if that is impossible.
void store_rate(const std::filesystem::path& file, unsigned threads, std::uint64_t per_second);

// The stored measurement; otherwise that of this process, which measures once, and stores it in
// `file` (created with its folder; a file that cannot be written is ignored). A measurement that
// failed is tried again by the next call. Any thread.
MachineRate rate_of_machine(const std::filesystem::path& file, unsigned threads,
                            const MeasureRate& measure);

// For measurements.
double clock_seconds(clockid_t clock);

// The facts of a session: "host.last_cache_bytes"; "host.read_bandwidth" (bytes per second) with
// "host.read_bandwidth_threads", or "host.no_read_bandwidth" with the reason; the same of
// "host.compute_peak" (operations per second).
std::vector<std::pair<std::string, std::string>> machine_rate_facts(const MachineRate& bandwidth,
                                                                    const MachineRate& peak,
                                                                    unsigned threads);

}  // namespace tt
