#include "tracer/memory/disk_speed.h"

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

}  // namespace tt
