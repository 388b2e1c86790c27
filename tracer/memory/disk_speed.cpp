#include "tracer/memory/disk_speed.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "tracer/memory/model_pages.h"

namespace tt {

namespace {

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

std::optional<ReadSpeed> measure_read_speed(const std::filesystem::path& file, std::uint64_t most,
                                            const std::function<bool()>& keep_going) {
  using Clock = std::chrono::steady_clock;
  constexpr std::uint64_t kRequest = 128U << 10, kPiece = 1U << 20, kAhead = 32U << 20;
  constexpr std::uint64_t kPart = 32U << 20;  // for the percentiles
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::error_code unknown;
  const std::uint64_t size =
      std::min<std::uint64_t>(most, std::filesystem::file_size(file, unknown));
  ::fdatasync(fd);  // pages of a file that was just written cannot be dropped
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  std::vector<char> piece(kPiece);
  std::vector<double> parts;
  const auto begin = Clock::now();
  auto part_begin = begin;
  std::uint64_t submitted = 0, read = 0;
  const auto seconds_since = [](Clock::time_point time) {
    return std::chrono::duration<double>(Clock::now() - time).count();
  };
  while (read < size && (!keep_going || keep_going())) {
    for (; submitted < std::min(size, read + kAhead); submitted += kRequest)
      ::posix_fadvise(fd, static_cast<off_t>(submitted), kRequest, POSIX_FADV_WILLNEED);
    const ssize_t count = ::pread(fd, piece.data(), kPiece, static_cast<off_t>(read));
    if (count <= 0) break;
    read += static_cast<std::uint64_t>(count);
    if (read / kPart == parts.size() && read < size) continue;
    parts.push_back(static_cast<double>(std::min(kPart, read)) / seconds_since(part_begin));
    part_begin = Clock::now();
  }
  const double seconds = seconds_since(begin);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
  if (read < size || read == 0) return std::nullopt;
  // The last part may be short.
  if (parts.size() > 1 && size % kPart != 0) parts.pop_back();
  std::ranges::sort(parts);
  const double mean = static_cast<double>(size) / seconds;
  return ReadSpeed{.mean = mean,
                   .low = std::min(mean, parts[parts.size() / 10]),
                   .high = std::max(mean, parts[parts.size() - 1 - parts.size() / 10])};
}

}  // namespace tt
