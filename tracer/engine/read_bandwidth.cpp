#include "tracer/engine/read_bandwidth.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <format>
#include <fstream>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "tracer/engine/host_facts.h"
#include "tracer/memory/limits/memory_limit.h"

namespace tt {

namespace {

// Zeroed memory that is returned to the kernel at the end; null: there is none.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes)
      : bytes_(bytes),
        data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Buffer() {
    if (data() != nullptr) ::munmap(data_, bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  char* data() const { return data_ == MAP_FAILED ? nullptr : static_cast<char*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

// Several times the last cache, so that little of it is read from there. 0: too little memory.
std::size_t buffer_bytes() {
  constexpr std::uint64_t kMinBytes = 128U << 20, kMaxBytes = 1U << 30;
  const std::uint64_t cache = last_cache_bytes();
  const std::uint64_t bytes = std::clamp(3 * cache, kMinBytes, kMaxBytes);
  const MemoryLimit limit = MemoryLimitReader().read();
  const std::uint64_t free = limit.limit > limit.fixed ? limit.limit - limit.fixed : 0;
  return bytes < 2 * cache || bytes > free / 4 ? 0 : bytes;
}

double seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Pass {
  double seconds = 0;  // from the first begin to the last end
  bool disturbed = false;
};

constexpr int kPasses = 6;
constexpr char kFilled = 2, kAbsent = 1;

// Each thread reads its own part in each pass. memchr() reads every byte once, with the widest
// loads of the processor, because the byte is not there. Empty: not all threads can be created.
std::vector<Pass> read_passes(char* buffer, std::size_t bytes, unsigned threads) {
  struct Times {
    double begin = 0, end = 0, processor = 0;
    bool found = false;
  };
  std::vector<std::vector<Times>> times(threads, std::vector<Times>(kPasses));
  {
    std::barrier together(static_cast<std::ptrdiff_t>(threads));
    std::vector<std::jthread> readers;
    const std::size_t part = bytes / threads;
    for (unsigned i = 0; i < threads; ++i) {
      const auto read = [&, own = buffer + i * part, i] {
        std::memset(own, kFilled, part);  // also places the pages near the processor
        for (Times& pass : times[i]) {
          together.arrive_and_wait();
          const double before = seconds(CLOCK_THREAD_CPUTIME_ID);
          pass.begin = seconds(CLOCK_MONOTONIC);
          pass.found = std::memchr(own, kAbsent, part) != nullptr;
          pass.end = seconds(CLOCK_MONOTONIC);
          pass.processor = seconds(CLOCK_THREAD_CPUTIME_ID) - before;
        }
      };
      try {
        readers.emplace_back(read);
      } catch (const std::system_error&) {
        // The others wait for as many threads as were announced.
        for (unsigned missing = i; missing < threads; ++missing) together.arrive_and_drop();
        return {};
      }
    }
  }
  std::vector<Pass> passes;
  for (int n = 0; n < kPasses; ++n) {
    double begin = 0, end = 0;
    Pass pass;
    for (unsigned i = 0; i < threads; ++i) {
      const Times& of = times[i][static_cast<std::size_t>(n)];
      begin = i == 0 ? of.begin : std::min(begin, of.begin);
      end = std::max(end, of.end);
      // A thread that waited for a processor measured that, too.
      pass.disturbed |= of.found || of.processor < 0.95 * (of.end - of.begin);
    }
    pass.seconds = end - begin;
    passes.push_back(pass);
  }
  return passes;
}

std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// A home folder may be that of several machines. A line of the file: "KEY\tBYTES_PER_SECOND".
std::string machine_key(unsigned threads) {
  return std::format("{} {} {} threads", first_line("/etc/machine-id"), cpu_name(), threads);
}

}  // namespace

std::uint64_t last_cache_bytes(const std::filesystem::path& root) {
  std::uint64_t largest = 0;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(root / "sys/devices/system/cpu/cpu0/cache", ignored)) {
    std::ifstream in(entry.path() / "size");
    std::uint64_t size = 0;
    char unit = ' ';
    if (!(in >> size)) continue;
    in >> unit;
    largest = std::max(largest, unit == 'M' ? size << 20 : unit == 'K' ? size << 10 : size);
  }
  return largest;
}

const char* to_text(NoBandwidth why) {
  switch (why) {
    case NoBandwidth::SmallModel:
      return "small_model";
    case NoBandwidth::NoFolder:
      return "no_folder";
    case NoBandwidth::LittleMemory:
      return "little_memory";
    case NoBandwidth::Busy:
      return "busy";
    case NoBandwidth::NotStored:
      return "not_stored";
  }
  return "";
}

Bandwidth measure_read_bandwidth(unsigned threads) {
  const std::size_t bytes = buffer_bytes();
  if (bytes == 0 || threads == 0) return std::unexpected(NoBandwidth::LittleMemory);
  const Buffer buffer(bytes);
  if (buffer.data() == nullptr) return std::unexpected(NoBandwidth::LittleMemory);
  double best = 0;
  const std::vector<Pass> passes = read_passes(buffer.data(), bytes, threads);
  if (passes.empty()) return std::unexpected(NoBandwidth::LittleMemory);
  for (const Pass& pass : passes) {
    if (pass.disturbed || pass.seconds <= 0) continue;
    best = std::max(best, static_cast<double>(bytes / threads * threads) / pass.seconds);
  }
  if (best <= 0) return std::unexpected(NoBandwidth::Busy);
  return static_cast<std::uint64_t>(best);
}

Bandwidth stored_read_bandwidth(const std::filesystem::path& file, unsigned threads) {
  const std::string key = machine_key(threads) + '\t';
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    std::uint64_t stored = 0;
    const char* end = line.data() + line.size();
    const auto [at, error] = std::from_chars(line.data() + key.size(), end, stored);
    if (error == std::errc() && at == end && stored > 0) return stored;
  }
  return std::unexpected(NoBandwidth::NotStored);
}

void store_read_bandwidth(const std::filesystem::path& file, unsigned threads,
                          std::uint64_t bytes_per_second) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  // One short write, so that two programs at a time do not mix their lines.
  std::ofstream(file, std::ios::app)
      << std::format("{}\t{}\n", machine_key(threads), bytes_per_second);
}

Bandwidth read_bandwidth(const std::filesystem::path& file, unsigned threads) {
  if (const auto stored = stored_read_bandwidth(file, threads)) return stored;
  // Where the file cannot be written, the next model is not worth another second.
  static std::mutex mutex;
  static std::map<unsigned, std::uint64_t> of_process;  // by threads
  const std::lock_guard lock(mutex);
  auto known = of_process.find(threads);
  if (known == of_process.end()) {
    const Bandwidth measured = measure_read_bandwidth(threads);
    if (!measured) return measured;
    known = of_process.emplace(threads, *measured).first;
  }
  store_read_bandwidth(file, threads, known->second);
  return known->second;
}

std::vector<std::pair<std::string, std::string>> bandwidth_facts(const Bandwidth& bandwidth,
                                                                 unsigned threads) {
  std::vector<std::pair<std::string, std::string>> facts;
  if (const std::uint64_t cache = last_cache_bytes(); cache > 0)
    facts.emplace_back("host.last_cache_bytes", std::to_string(cache));
  if (bandwidth) {
    facts.emplace_back("host.read_bandwidth", std::to_string(*bandwidth));
    facts.emplace_back("host.read_bandwidth_threads", std::to_string(threads));
  } else {
    facts.emplace_back("host.no_read_bandwidth", to_text(bandwidth.error()));
  }
  return facts;
}

}  // namespace tt
