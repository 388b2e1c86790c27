#include "tracer/recorder/step_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace tt::test {
namespace {

// Against a reference model: a count of free buffers.
TEST(StepPool, MatchesACounter) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::size_t capacity = 1 + random() % 6;
    StepPool pool(capacity, 16, 64);
    std::vector<StepBuffer*> out;
    for (int i = 0; i < 200; ++i) {
      if (random() % 2 == 0) {
        StepBuffer* buffer = pool.try_acquire();
        ASSERT_EQ(buffer == nullptr, out.size() == capacity);
        if (buffer != nullptr) {
          EXPECT_TRUE(std::ranges::find(out, buffer) == out.end()) << "a buffer was returned twice";
          out.push_back(buffer);
        }
      } else if (!out.empty()) {
        const auto which = out.begin() + static_cast<std::ptrdiff_t>(random() % out.size());
        pool.release(*which);
        out.erase(which);
      }
    }
  }
}

TEST(StepPool, ReturnsResetBuffer) {
  StepPool pool(1, 16, 64);
  StepBuffer* buffer = pool.try_acquire();
  const std::uint64_t generation = buffer->generation.load();
  buffer->ops_done.store(7);
  buffer->first_op_ns.store(8);
  buffer->arena_used = 32;
  buffer->captured.push_back({.slot = 1, .count = 2, .offset = 0});
  buffer->stats.push_back({.op = OpId{3}});
  buffer->slots_lost = 4;
  buffer->count_mismatch = true;
  buffer->header.n_tokens = 9;
  pool.release(buffer);

  StepBuffer* again = pool.try_acquire();
  ASSERT_EQ(again, buffer);
  EXPECT_GT(again->generation.load(), generation) << "a live view could not distinguish the steps";
  EXPECT_EQ(again->ops_done.load(), 0U);
  EXPECT_EQ(again->first_op_ns.load(), 0) << "for a step that fails before its graph is known";
  EXPECT_EQ(again->arena_used, 0U);
  EXPECT_TRUE(again->captured.empty());
  EXPECT_TRUE(again->stats.empty());
  EXPECT_EQ(again->slots_lost, 0U);
  EXPECT_FALSE(again->count_mismatch);
  EXPECT_EQ(again->header, Step{});
  EXPECT_EQ(again->graph, nullptr);
  EXPECT_EQ(again->addresses, nullptr);
}

TEST(StepPool, AcceptsReleaseFromAnotherThread) {
  constexpr std::size_t kBuffers = 4;
  StepPool pool(kBuffers, 16, 64);
  std::mutex mutex;
  std::vector<StepBuffer*> handed;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (;;) {
      StepBuffer* buffer = nullptr;
      const bool last = done.load();
      {
        const std::lock_guard lock(mutex);
        if (!handed.empty()) {
          buffer = handed.back();
          handed.pop_back();
        }
      }
      if (buffer != nullptr) {
        pool.release(buffer);
      } else if (last) {
        return;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::uint64_t taken = 0;
  while (taken < 20'000) {
    StepBuffer* buffer = pool.try_acquire();
    if (buffer == nullptr) {
      std::this_thread::yield();
      continue;
    }
    ++taken;
    const std::lock_guard lock(mutex);
    handed.push_back(buffer);
  }
  done = true;
  writer.join();
  std::set<StepBuffer*> all;
  while (StepBuffer* buffer = pool.try_acquire()) all.insert(buffer);
  EXPECT_EQ(all.size(), kBuffers);
}

}  // namespace
}  // namespace tt::test
