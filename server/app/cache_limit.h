// The limit of the caches of read sessions, from the memory limit of the process: a part of it, and
// less when others need the memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>

#include "server/sessions/cache_room.h"
#include "tracer/memory/limits/memory_limit.h"

namespace tt {

// What the caches may hold if the process has `limit` and they hold `held` bytes of it: an eighth,
// at most CacheRoom::kDefaultBytes; and less, if more than nine tenths of the memory are in use
// that the kernel cannot take back.
std::size_t cache_limit(const MemoryLimit& limit, std::size_t held);

// Sets the limit of a room at once and every second, on a thread of its own, and returns memory
// that was freed to the kernel.
class CacheLimitFollower {
 public:
  // `read` is called on this thread and then on the other one.
  CacheLimitFollower(CacheRoom& room, std::function<MemoryLimit()> read);

  // Something large was freed: it goes back to the kernel within a second. Any thread.
  void memory_was_freed() { freed_ = true; }

 private:
  void follow();

  CacheRoom& room_;
  const std::function<MemoryLimit()> read_;
  std::atomic<bool> freed_ = false;
  std::jthread thread_;
};

}  // namespace tt
