#include "server/app/cache_limit.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <utility>

namespace tt {

namespace {

constexpr std::chrono::seconds kInterval{1};
constexpr std::uint64_t kPart = 8;
// The index of the session that is open.
constexpr std::uint64_t kAtLeast = 4U << 20;

}  // namespace

std::size_t cache_limit(const MemoryLimit& limit, std::size_t held) {
  const std::uint64_t part = std::min<std::uint64_t>(limit.limit / kPart, CacheRoom::kDefaultBytes);
  const std::uint64_t usable = limit.limit / 10 * 9 + held;
  const std::uint64_t left = usable - std::min(usable, limit.fixed);
  return std::max(std::min(part, left), kAtLeast);
}

CacheLimitFollower::CacheLimitFollower(CacheRoom& room, std::function<MemoryLimit()> read)
    : room_(room), read_(std::move(read)) {
  follow();
  thread_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, kInterval, [&] { return stop.stop_requested(); })) follow();
  });
}

void CacheLimitFollower::follow() {
  const bool removed = room_.set_limit(cache_limit(read_(), room_.stats().bytes));
  // Including pages between blocks in use.
  if (freed_.exchange(false) || removed) malloc_trim(0);
}

}  // namespace tt
