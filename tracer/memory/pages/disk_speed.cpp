#include "tracer/memory/pages/disk_speed.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <format>
#include <fstream>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "tracer/memory/pages/model_pages.h"

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
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(at_); }

 private:
  const int fd_;
  std::uint64_t size_ = 0;
  void* at_ = MAP_FAILED;
};

}  // namespace

std::optional<ReadSpeed> measure_read_speed(const std::filesystem::path& file,
                                            const ReadPattern& pattern,
                                            const std::function<bool()>& keep_going) {
  constexpr std::uint64_t kPart = 16U << 20;  // for the percentiles
  const FileMapping mapping(file);
  if (!mapping.mapped()) return std::nullopt;
  const std::vector<ModelFile> files{
      {.path = file.string(), .size = mapping.size(), .header_hash = {}}};
  ModelPages pages(files);
  const auto range = [&](std::uint64_t from, std::uint64_t to) {
    return MappedPages{.offset = from, .address = mapping.address() + from, .length = to - from};
  };
  const MappedPages all = range(0, mapping.size());
  pages.set_fault_around(all, false);
  pages.release(all);
  pages.release_files();

  std::uint64_t piece = std::max<std::uint64_t>(block_bytes(), 1U << 20);
  if (pattern.piece > 0) piece = (pattern.piece + page_bytes() - 1) / page_bytes() * page_bytes();
  std::vector<MappedPages> pieces;
  std::uint64_t size = 0;
  for (std::uint64_t at = 0; at < mapping.size() && size < pattern.most;
       at += pattern.stride * piece) {
    pieces.push_back(range(at, std::min(mapping.size(), at + piece)));
    size += pieces.back().length;
  }

  const BusyThreads busy(pattern.busy_threads);
  std::vector<double> parts;
  std::uint64_t read = 0;
  double seconds = 0, processor_seconds = 0;
  // Not on the thread of the caller: an ordinary user cannot raise its priority again.
  std::jthread([&] {
    lower_priority();
    // The threads that read blocks have the priority of the one that begins.
    if (pattern.blocks) pages.use_blocks(all);
    const auto seconds_since = [](Clock::time_point time) {
      return std::chrono::duration<double>(Clock::now() - time).count();
    };
    const auto begin = Clock::now();
    auto part_begin = begin;
    std::uint64_t submitted = 0, part_read = 0;
    for (std::size_t next = 0, unread = 0; unread < pieces.size(); ++unread) {
      if (keep_going && !keep_going()) return;
      if (pattern.pause.count() > 0) std::this_thread::sleep_for(pattern.pause);
      for (; next < pieces.size() && (next <= unread || submitted < read + pattern.window);
           ++next) {
        pages.submit(pieces[next]);
        submitted += pieces[next].length;
      }
      if (!pages.wait(pieces[unread])) return;
      pages.release(pieces[unread]);
      read += pieces[unread].length;
      part_read += pieces[unread].length;
      if (part_read < kPart && (read < size || !parts.empty())) continue;
      parts.push_back(static_cast<double>(part_read) / seconds_since(part_begin));
      part_begin = Clock::now();
      part_read = 0;
    }
    seconds = seconds_since(begin);
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    const auto time_of = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    processor_seconds = time_of(used.ru_utime) + time_of(used.ru_stime);
  }).join();
  pages.release(all);
  if (read < size || size == 0) return std::nullopt;
  std::ranges::sort(parts);
  const double mean = static_cast<double>(size) / seconds;
  return ReadSpeed{.mean = mean,
                   .low = std::min(mean, parts[parts.size() / 10]),
                   .high = std::max(mean, parts[parts.size() - 1 - parts.size() / 10]),
                   .processor_seconds = processor_seconds / static_cast<double>(size)};
}

std::optional<FaultReads> measure_fault_reads(const std::filesystem::path& file, unsigned threads,
                                              const std::function<bool()>& keep_going) {
  constexpr std::uint64_t kFaults = 16;
  constexpr std::chrono::seconds kMaxTime{1};
  const FileMapping mapping(file);
  if (!mapping.mapped()) return std::nullopt;
  const std::vector<ModelFile> files{
      {.path = file.string(), .size = mapping.size(), .header_hash = {}}};
  const ModelPages pages(files);
  const auto range = [&](std::uint64_t from, std::uint64_t length) {
    return MappedPages{.offset = from, .address = mapping.address() + from, .length = length};
  };
  const MappedPages all = range(0, mapping.size());
  pages.release(all);
  pages.release_files();
  const std::uint64_t before = bytes_read_from_disk();
  const auto begin = Clock::now();
  std::vector<std::uint64_t> places;
  while (places.size() < kFaults && Clock::now() - begin < kMaxTime) {
    if (keep_going && !keep_going()) return std::nullopt;
    // In the middle of parts of the file, so that no fault reads what another one needs.
    places.push_back((2 * places.size() + 1) * mapping.size() / (2 * kFaults) / page_bytes() *
                     page_bytes());
    // Not by a read of a byte: the file may have been truncated.
    if (!pages.wait(range(places.back(), page_bytes()))) return std::nullopt;
  }
  const std::chrono::duration<double> time = Clock::now() - begin;
  const auto bytes = static_cast<double>(bytes_read_from_disk() - before);
  // The kernel maps a few of the pages that it has read with the missing one, the others when they
  // are used.
  const std::uint64_t each = static_cast<std::uint64_t>(bytes) / places.size() / 2;
  const auto map_begin = Clock::now();
  for (const std::uint64_t place : places)
    pages.wait(range(place, std::min(each, mapping.size() - place)));
  const std::chrono::duration<double> map_time = Clock::now() - map_begin;
  // Where memory is short, the kernel drops as much as it reads.
  const auto drop_begin = Clock::now();
  pages.release(all);
  pages.release_files();
  const std::chrono::duration<double> drop_time = Clock::now() - drop_begin;
  if (bytes == 0) return std::nullopt;
  const auto mapped = static_cast<double>(std::max<std::uint64_t>(each, 1) * places.size());
  const double at_once = std::max(threads, 1U);
  return FaultReads{.bytes = bytes / static_cast<double>(places.size()),
                    .bytes_per_second = bytes / (time + drop_time / at_once).count(),
                    .map_seconds = map_time.count() / mapped / at_once};
}

std::uint64_t fault_bytes(const std::filesystem::path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return 0;
  const std::string device =
      std::format("/sys/dev/block/{}:{}", ::major(info.st_dev), ::minor(info.st_dev));
  // Of a disk; of one that the partition is on.
  for (const char* queue : {"/queue/read_ahead_kb", "/../queue/read_ahead_kb"}) {
    std::ifstream in(device + queue);
    if (std::uint64_t kib = 0; in >> kib) return 2 * (kib << 10);
  }
  return 0;
}

}  // namespace tt
