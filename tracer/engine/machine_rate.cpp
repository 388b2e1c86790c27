#include "tracer/engine/machine_rate.h"

#include <algorithm>
#include <charconv>
#include <format>
#include <fstream>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "tracer/engine/host_facts.h"
#include "tracer/engine/read_bandwidth.h"

namespace tt {

namespace {

std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// A home folder may be that of several machines. A line of the file: "KEY\tPER_SECOND".
std::string machine_key(unsigned threads) {
  return std::format("{} {} {} threads", first_line("/etc/machine-id"), cpu_name(), threads);
}

// Threads with a processor each are at least about as fast as one of them: what is below this part
// of its rate was measured beside another program.
constexpr double kPlausible = 0.8;

std::filesystem::path in_folder(const std::filesystem::path& folder, const char* name) {
  return folder.empty() ? folder : folder / name;
}

}  // namespace

const char* to_text(NotMeasured why) {
  switch (why) {
    case NotMeasured::SmallModel:
      return "small_model";
    case NotMeasured::NoFolder:
      return "no_folder";
    case NotMeasured::LittleMemory:
      return "little_memory";
    case NotMeasured::Busy:
      return "busy";
    case NotMeasured::NotStored:
      return "not_stored";
  }
  return "";
}

std::filesystem::path read_bandwidth_file(const std::filesystem::path& folder) {
  return in_folder(folder, "read_bandwidth");
}

std::filesystem::path compute_peak_file(const std::filesystem::path& folder) {
  return in_folder(folder, "compute_peak");
}

MachineRate stored_rate(const std::filesystem::path& file, unsigned threads) {
  // Other programs only make a measurement lower: the highest one counts.
  const auto highest = [&](unsigned of_threads) {
    const std::string key = machine_key(of_threads) + '\t';
    std::uint64_t rate = 0;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with(key)) continue;
      std::uint64_t stored = 0;
      const char* end = line.data() + line.size();
      const auto [at, error] = std::from_chars(line.data() + key.size(), end, stored);
      if (error == std::errc() && at == end) rate = std::max(rate, stored);
    }
    return rate;
  };
  const std::uint64_t rate = highest(threads);
  const bool have_processors = threads <= std::thread::hardware_concurrency();
  if (rate == 0 || (threads > 1 && have_processors &&
                    static_cast<double>(rate) < kPlausible * static_cast<double>(highest(1))))
    return std::unexpected(NotMeasured::NotStored);
  return rate;
}

void store_rate(const std::filesystem::path& file, unsigned threads, std::uint64_t per_second) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  // One short write, so that two programs at a time do not mix their lines.
  std::ofstream(file, std::ios::app) << std::format("{}\t{}\n", machine_key(threads), per_second);
}

MachineRate rate_of_machine(const std::filesystem::path& file, unsigned threads,
                            const MeasureRate& measure) {
  if (file.empty()) return std::unexpected(NotMeasured::NoFolder);
  if (const auto stored = stored_rate(file, threads)) return stored;
  // Where the file cannot be written, the next model is not worth another second.
  static std::mutex mutex;
  static std::map<std::pair<std::string, unsigned>, std::uint64_t> of_process;  // by file, threads
  const std::lock_guard lock(mutex);
  const std::pair key(file.filename().string(), threads);
  auto known = of_process.find(key);
  if (known == of_process.end()) {
    const MachineRate measured = measure(threads);
    if (!measured) return measured;
    known = of_process.emplace(key, *measured).first;
  }
  store_rate(file, threads, known->second);
  return known->second;
}

double clock_seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::vector<std::pair<std::string, std::string>> machine_rate_facts(const MachineRate& bandwidth,
                                                                    const MachineRate& peak,
                                                                    unsigned threads) {
  std::vector<std::pair<std::string, std::string>> facts;
  if (const std::uint64_t cache = last_cache_bytes(); cache > 0)
    facts.emplace_back("host.last_cache_bytes", std::to_string(cache));
  for (const auto& [name, rate] :
       {std::pair<std::string, const MachineRate&>("read_bandwidth", bandwidth),
        std::pair<std::string, const MachineRate&>("compute_peak", peak)}) {
    if (rate) {
      facts.emplace_back("host." + name, std::to_string(*rate));
      facts.emplace_back("host." + name + "_threads", std::to_string(threads));
    } else {
      facts.emplace_back("host.no_" + name, to_text(rate.error()));
    }
  }
  return facts;
}

}  // namespace tt
