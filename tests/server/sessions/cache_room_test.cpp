#include "server/sessions/cache_room.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/app/cache_limit.h"
#include "server/sessions/thread_heap.h"

namespace tt {
namespace {

struct Filled final : CacheEntry {
  std::vector<char> data;
};

std::shared_ptr<CacheEntry> fill(CacheRoom& room, const std::string& id, std::size_t bytes) {
  auto entry = room.entry({nullptr, id}, [] { return std::make_shared<Filled>(); });
  const std::int64_t before = thread_heap_bytes();
  static_cast<Filled&>(*entry).data.resize(bytes);
  room.grew(entry, thread_heap_bytes() - before);
  return entry;
}

TEST(ThreadHeap, CountsWhatIsKeptAndForgetsWhatIsFreed) {
  const std::int64_t before = thread_heap_bytes();
  std::map<int, std::string> kept;
  for (int i = 0; i < 1000; ++i) {
    kept[i] = std::string(1000, 'x');
    const std::vector<char> temporary(100'000);
  }
  const std::int64_t held = thread_heap_bytes() - before;
  EXPECT_GE(held, 1000 * 1000);
  EXPECT_LE(held, 1000 * 1200);  // a map node and the rounding of malloc per string
  kept.clear();
  EXPECT_EQ(thread_heap_bytes(), before);
}

TEST(ThreadHeap, CountsEachThreadSeparately) {
  const std::int64_t before = thread_heap_bytes();
  std::unique_ptr<std::vector<char>> passed;
  std::thread([&] {
    const std::int64_t at_start = thread_heap_bytes();
    passed = std::make_unique<std::vector<char>>(1 << 20);
    EXPECT_GE(thread_heap_bytes() - at_start, 1 << 20);
  }).join();
  passed.reset();  // allocated by the other thread
  EXPECT_LE(thread_heap_bytes() - before, -(1 << 20));
}

TEST(ThreadHeap, CountsAlignedBlocks) {
  struct alignas(256) Wide {
    std::array<char, 300> bytes;
  };
  const std::int64_t before = thread_heap_bytes();
  {
    const std::vector<Wide> wide(100);
    EXPECT_GE(thread_heap_bytes() - before, 100 * 512);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wide.data()) % 256, 0U);
  }
  EXPECT_EQ(thread_heap_bytes(), before);
}

TEST(CacheRoom, RemovesTheLeastRecentlyUsedOfAllCaches) {
  CacheRoom room(10'000);
  const int first = 0, second = 0;
  const auto use = [&](const int& cache, const std::string& id) {
    return room.entry({&cache, id}, [] { return std::make_shared<Filled>(); });
  };
  room.grew(use(first, "a"), 4000);
  room.grew(use(second, "a"), 4000);
  use(first, "a");
  room.grew(use(first, "b"), 4000);  // "a" of the second cache was used longest ago
  EXPECT_EQ(room.stats().bytes, 8000U);
  EXPECT_EQ(room.stats().entries, 2U);
  room.grew(use(second, "c"), 20'000);  // larger than the room: the others go, it stays
  EXPECT_EQ(room.stats().entries, 1U);
  EXPECT_EQ(room.stats().bytes, 20'000U);
}

TEST(CacheRoom, LowerLimitRemovesEntriesAtOnce) {
  CacheRoom room(1 << 20);
  const std::weak_ptr<CacheEntry> old = fill(room, "old", 400'000);
  const std::shared_ptr<CacheEntry> in_use = fill(room, "new", 400'000);
  EXPECT_FALSE(room.set_limit(900'000));
  EXPECT_TRUE(room.set_limit(500'000));
  EXPECT_TRUE(old.expired());
  EXPECT_TRUE(room.set_limit(0));
  EXPECT_EQ(room.stats().entries, 0U);
  EXPECT_EQ(static_cast<const Filled&>(*in_use).data.size(), 400'000U) << "its user keeps it";
}

TEST(CacheLimit, IsAPartOfTheMemoryAndLessUnderPressure) {
  constexpr std::uint64_t kMiB = 1U << 20;
  const auto limit = [](std::uint64_t all, std::uint64_t fixed) {
    MemoryLimit made;
    made.limit = made.used = all * kMiB;
    made.fixed = fixed * kMiB;
    return made;
  };
  EXPECT_EQ(cache_limit(limit(400, 100), 0), 50 * kMiB);
  EXPECT_EQ(cache_limit(limit(64'000, 100), 0), CacheRoom::kDefaultBytes);
  // 20 of the 380 fixed MiB are those of the caches: with none, 360 = 90 % would be in use.
  EXPECT_EQ(cache_limit(limit(400, 370), 20 * kMiB), 10 * kMiB);
  EXPECT_EQ(cache_limit(limit(400, 399), 20 * kMiB), 4 * kMiB) << "the open session has an index";
}

}  // namespace
}  // namespace tt
