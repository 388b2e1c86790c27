#include "tracer/memory/disk_speed.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

#include "tracer/memory/model_pages.h"

namespace tt {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSampleBytes = 32U << 20;
constexpr double kSampleSeconds = 0.1;

}  // namespace

void DiskSpeed::busy(bool now_busy) {
  const auto now = Clock::now();
  if (busy_since_) {
    seconds_ += std::chrono::duration<double>(now - *busy_since_).count();
    if (!now_busy || seconds_ > kSampleSeconds) sample();
  } else if (now_busy) {
    bytes_at_start_ = bytes_read_from_disk();
    seconds_ = 0;
  }
  busy_since_ = now_busy ? std::optional(now) : std::nullopt;
}

void DiskSpeed::sample() {
  const std::uint64_t bytes = bytes_read_from_disk();
  sum_bytes_ += bytes - bytes_at_start_;
  sum_seconds_ += seconds_;
  bytes_at_start_ = bytes;
  seconds_ = 0;
  if (sum_bytes_ < kSampleBytes) return;
  const double speed = static_cast<double>(sum_bytes_) / sum_seconds_;
  speed_ = speed_ == 0 ? speed : 0.8 * speed_ + 0.2 * speed;
  sum_bytes_ = 0;
  sum_seconds_ = 0;
}

namespace {

// Threads that compute for nothing, as those of a model that wait for each other do.
class BusyThreads {
 public:
  explicit BusyThreads(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([](const std::stop_token& stop) {
        while (!stop.stop_requested()) std::atomic_signal_fence(std::memory_order_seq_cst);
      });
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

// A whole file, mapped.
class FileMapping {
 public:
  explicit FileMapping(const std::filesystem::path& file)
      : fd_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat info{};
    if (fd_ < 0 || ::fstat(fd_, &info) != 0 || info.st_size <= 0) return;
    size_ = static_cast<std::uint64_t>(info.st_size);
    at_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0);
    ::fdatasync(fd_);  // pages of a file that was just written cannot be dropped
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);  // as llama.cpp: faults read more
  }
  ~FileMapping() {
    if (mapped()) ::munmap(at_, size_);
    if (fd_ >= 0) ::close(fd_);
  }
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  bool mapped() const { return at_ != MAP_FAILED; }
  std::uint64_t size() const { return size_; }
  const volatile char* begin() const { return static_cast<const volatile char*>(at_); }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(at_); }

 private:
  const int fd_;
  std::uint64_t size_ = 0;
  void* at_ = MAP_FAILED;
};

}  // namespace

std::optional<ReadSpeed> measure_read_speed(const std::filesystem::path& file, std::uint64_t most,
                                            unsigned busy_threads,
                                            const std::function<bool()>& keep_going) {
  constexpr std::uint64_t kAhead = 32U << 20;
  constexpr std::uint64_t kPart = 32U << 20;  // for the percentiles
  const FileMapping mapping(file);
  if (!mapping.mapped()) return std::nullopt;
  const std::uint64_t size = std::min(most, mapping.size());
  const std::vector<ModelFile> files{{.path = file.string(), .size = size, .header_hash = {}}};
  ModelPages pages(files);
  const auto range = [&](std::uint64_t from, std::uint64_t to) {
    return MappedPages{.offset = from, .address = mapping.address() + from, .length = to - from};
  };
  const MappedPages all = range(0, size);
  pages.set_fault_around(all, false);
  pages.use_blocks(all);
  pages.release(all);
  pages.release_files();
  const std::uint64_t piece = std::max<std::uint64_t>(block_bytes(), 1U << 20);
  const BusyThreads busy(busy_threads);
  std::vector<double> parts;
  const auto begin = Clock::now();
  auto part_begin = begin;
  std::uint64_t submitted = 0, read = 0;
  const auto seconds_since = [](Clock::time_point time) {
    return std::chrono::duration<double>(Clock::now() - time).count();
  };
  while (read < size && (!keep_going || keep_going())) {
    while (submitted < std::min(size, read + kAhead)) {
      const std::uint64_t end = std::min(size, submitted + piece);
      pages.submit(range(submitted, end));
      submitted = end;
    }
    const MappedPages next = range(read, std::min(size, read + piece));
    if (!pages.wait(next)) break;
    pages.release(next);
    read += next.length;
    if (read / kPart == parts.size() && read < size) continue;
    parts.push_back(static_cast<double>(std::min(kPart, read)) / seconds_since(part_begin));
    part_begin = Clock::now();
  }
  const double seconds = seconds_since(begin);
  pages.release(all);
  if (read < size) return std::nullopt;
  // The last part may be short.
  if (parts.size() > 1 && size % kPart != 0) parts.pop_back();
  std::ranges::sort(parts);
  const double mean = static_cast<double>(size) / seconds;
  return ReadSpeed{.mean = mean,
                   .low = std::min(mean, parts[parts.size() / 10]),
                   .high = std::max(mean, parts[parts.size() - 1 - parts.size() / 10])};
}

std::optional<FaultReads> measure_fault_reads(const std::filesystem::path& file,
                                              const std::function<bool()>& keep_going) {
  constexpr std::uint64_t kFaults = 16;
  constexpr std::chrono::seconds kMaxTime{1};
  const FileMapping mapping(file);
  if (!mapping.mapped()) return std::nullopt;
  const std::vector<ModelFile> files{
      {.path = file.string(), .size = mapping.size(), .header_hash = {}}};
  const ModelPages pages(files);
  const MappedPages all{.address = mapping.address(), .length = mapping.size()};
  pages.release(all);
  pages.release_files();
  const std::uint64_t before = bytes_read_from_disk();
  const auto begin = Clock::now();
  std::uint64_t faults = 0;
  while (faults < kFaults && Clock::now() - begin < kMaxTime) {
    if (keep_going && !keep_going()) return std::nullopt;
    // In the middle of parts of the file, so that no fault reads what another one needs.
    const std::uint64_t at = (2 * faults + 1) * mapping.size() / (2 * kFaults);
    static_cast<void>(mapping.begin()[at]);
    ++faults;
  }
  const std::chrono::duration<double> time = Clock::now() - begin;
  const auto bytes = static_cast<double>(bytes_read_from_disk() - before);
  pages.release(all);
  pages.release_files();
  if (bytes == 0) return std::nullopt;
  return FaultReads{.bytes = bytes / static_cast<double>(faults),
                    .bytes_per_second = bytes / time.count()};
}

}  // namespace tt
