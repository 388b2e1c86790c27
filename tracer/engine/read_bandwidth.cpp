#include "tracer/engine/read_bandwidth.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <system_error>
#include <thread>

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
          const double before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
          pass.begin = clock_seconds(CLOCK_MONOTONIC);
          pass.found = std::memchr(own, kAbsent, part) != nullptr;
          pass.end = clock_seconds(CLOCK_MONOTONIC);
          pass.processor = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - before;
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

MachineRate measure_read_bandwidth(unsigned threads) {
  const std::size_t bytes = buffer_bytes();
  if (bytes == 0 || threads == 0) return std::unexpected(NotMeasured::LittleMemory);
  const Buffer buffer(bytes);
  if (buffer.data() == nullptr) return std::unexpected(NotMeasured::LittleMemory);
  double best = 0;
  const std::vector<Pass> passes = read_passes(buffer.data(), bytes, threads);
  if (passes.empty()) return std::unexpected(NotMeasured::LittleMemory);
  for (const Pass& pass : passes) {
    if (pass.disturbed || pass.seconds <= 0) continue;
    best = std::max(best, static_cast<double>(bytes / threads * threads) / pass.seconds);
  }
  if (best <= 0) return std::unexpected(NotMeasured::Busy);
  return static_cast<std::uint64_t>(best);
}

}  // namespace tt
