#include "tracer/memory/pages/read_ahead_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tt::test {
namespace {

using Use = ReadAheadWindow::Use;
using Ranges = std::vector<std::uint32_t>;

// Six ranges of 10 bytes, each read by one op.
std::vector<Use> six_uses() {
  return {{.op = 0, .range = 0},  {.op = 5, .range = 1},  {.op = 10, .range = 2},
          {.op = 15, .range = 3}, {.op = 20, .range = 4}, {.op = 25, .range = 5}};
}

TEST(ReadAheadWindow, FollowsTheRunningOp) {
  const auto uses = six_uses();
  ReadAheadWindow window(std::vector<std::uint64_t>(6, 10));
  window.set_schedule(uses);
  const auto* changes = &window.advance({.step = 0, .ops_done = 0}, 30);
  EXPECT_EQ(changes->fetch, (Ranges{0, 1, 2}));
  EXPECT_EQ(changes->release, Ranges{});
  changes = &window.advance({.step = 0, .ops_done = 3}, 30);
  EXPECT_EQ(changes->fetch, (Ranges{3}));
  EXPECT_EQ(changes->release, (Ranges{0}));
  changes = &window.advance({.step = 0, .ops_done = 21}, 30);
  EXPECT_EQ(changes->fetch, (Ranges{5, 0, 1}));  // the first ones for the next step
  EXPECT_EQ(changes->release, (Ranges{1, 2, 3}));
  changes = &window.advance({.step = 1, .ops_done = 0}, 30);
  EXPECT_EQ(changes->fetch, (Ranges{2}));
  EXPECT_EQ(changes->release, (Ranges{5}));
  EXPECT_EQ(window.bytes_ahead(), 30U);
}

TEST(ReadAheadWindow, SkipsWhatHasPassed) {
  const auto uses = six_uses();
  ReadAheadWindow window(std::vector<std::uint64_t>(6, 10));
  window.set_schedule(uses);
  EXPECT_EQ(window.advance({.step = 7, .ops_done = 12}, 20).fetch, (Ranges{3, 4}));
  EXPECT_EQ(window.advance({.step = 9, .ops_done = 16}, 20).fetch, (Ranges{4, 5}));
}

// Inference reads the ranges of all ops that have passed, however late the window is.
TEST(ReadAheadWindow, OnlyItsRangesStayInMemoryIfItIsLate) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 numbers(seed);  // NOLINT: reproducible
    const auto random = [&] { return static_cast<std::uint32_t>(numbers()); };
    std::vector<Use> uses;
    std::uint32_t op = 0;
    for (int i = 0; i < 30; ++i) uses.push_back({.op = op += random() % 4, .range = random() % 20});
    ReadAheadWindow window(std::vector<std::uint64_t>(20, 10));
    window.set_schedule(uses);
    std::set<std::uint32_t> in_memory, in_window;
    ReadAheadWindow::Position at;
    for (int i = 0; i < 100; ++i) {
      const ReadAheadWindow::Position before = at;
      at.step += random() % 4 == 0 ? random() % 3 : 0;
      at.ops_done = (at.step > before.step ? 0 : before.ops_done) + random() % 20;
      for (const Use& use : uses) {
        const bool earlier_step = before.step < at.step && use.op >= before.ops_done;
        const bool this_step =
            use.op < at.ops_done && (before.step < at.step || use.op >= before.ops_done);
        if (earlier_step || this_step || before.step + 1 < at.step) in_memory.insert(use.range);
      }
      const auto& changes = window.advance(at, 40 + random() % 60);
      for (const std::uint32_t range : changes.release) in_window.erase(range);
      for (const std::uint32_t range : changes.release) in_memory.erase(range);
      for (const std::uint32_t range : changes.skipped) in_memory.erase(range);
      in_window.insert(changes.fetch.begin(), changes.fetch.end());
      in_memory.insert(changes.fetch.begin(), changes.fetch.end());
      ASSERT_EQ(in_memory, in_window);
    }
  }
}

TEST(ReadAheadWindow, RunningOpIsReadBeyondTheLimit) {
  const std::vector<Use> uses = {
      {.op = 3, .range = 0}, {.op = 3, .range = 1}, {.op = 9, .range = 2}};
  ReadAheadWindow window({50, 50, 50});
  window.set_schedule(uses);
  EXPECT_EQ(window.advance({.step = 0, .ops_done = 1}, 10).fetch, Ranges{});
  EXPECT_EQ(window.advance({.step = 0, .ops_done = 2}, 10).fetch, (Ranges{0, 1}));
  EXPECT_EQ(window.advance({.step = 0, .ops_done = 3}, 10).fetch, Ranges{});
}

TEST(ReadAheadWindow, RangeUsedTwiceStaysBetweenNearUses) {
  const std::vector<Use> uses = {
      {.op = 0, .range = 0}, {.op = 5, .range = 1}, {.op = 10, .range = 0}, {.op = 50, .range = 2}};
  ReadAheadWindow window({10, 10, 10});
  window.set_schedule(uses);
  EXPECT_EQ(window.advance({.step = 0, .ops_done = 0}, 30).fetch, (Ranges{0, 1}));
  EXPECT_EQ(window.advance({.step = 0, .ops_done = 1}, 30).release, Ranges{});
  EXPECT_EQ(window.advance({.step = 0, .ops_done = 11}, 10).release, (Ranges{1, 0}));
}

TEST(ReadAheadWindow, KeptRangesAreNeitherFetchedNorReleased) {
  const auto uses = six_uses();
  ReadAheadWindow window({10, 10, 0, 10, 10, 10});
  window.set_schedule(uses);
  EXPECT_EQ(window.advance({.step = 0, .ops_done = 0}, 20).fetch, (Ranges{0, 1}));
  ASSERT_NE(window.next_unread(), nullptr);
  EXPECT_EQ(window.next_unread()->use.range, 0U);
  window.keep(0, false);
  EXPECT_EQ(window.next_unread()->use.range, 1U);
  const auto& changes = window.advance({.step = 0, .ops_done = 6}, 20);
  EXPECT_EQ(changes.fetch, (Ranges{3, 4}));
  EXPECT_EQ(changes.release, (Ranges{1}));
}

TEST(ReadAheadWindow, NewScheduleReleasesWhatItDoesNotContain) {
  const auto uses = six_uses();
  const std::vector<Use> other = {{.op = 2, .range = 1}, {.op = 8, .range = 5}};
  ReadAheadWindow window(std::vector<std::uint64_t>(6, 10));
  window.set_schedule(uses);
  window.advance({.step = 0, .ops_done = 0}, 30);
  window.set_schedule(other);
  const auto& changes = window.advance({.step = 1, .ops_done = 0}, 20);
  EXPECT_EQ(changes.fetch, (Ranges{5}));
  EXPECT_EQ(changes.release, (Ranges{0, 2}));
  EXPECT_EQ(window.clear().release, (Ranges{1, 5}));
}

// Against a model: exactly the ranges of the window are in memory, and nothing is released while
// its op can still read it.
TEST(ReadAheadWindow, MatchesNaiveWindow) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 numbers(seed);  // NOLINT: reproducible
    const auto random = [&] { return static_cast<std::uint32_t>(numbers()); };
    std::vector<std::uint64_t> bytes(20);
    for (auto& size : bytes) size = 1 + random() % 50;
    std::vector<Use> uses;
    std::uint32_t op = 0;
    for (int i = 0; i < 30; ++i) uses.push_back({.op = op += random() % 4, .range = random() % 20});
    ReadAheadWindow window(bytes);
    window.set_schedule(uses);
    std::set<std::uint32_t> resident;
    ReadAheadWindow::Position at;
    for (int i = 0; i < 200; ++i) {
      if (random() % 3 > 0) at.ops_done += random() % 3;
      if (at.ops_done > op + 1 || random() % 40 == 0) at = {.step = at.step + 1, .ops_done = 0};
      const std::uint64_t limit = 60 + random() % 60;
      const auto& changes = window.advance(at, limit);
      for (const std::uint32_t range : changes.release) ASSERT_EQ(resident.erase(range), 1U);
      for (const std::uint32_t range : changes.fetch) ASSERT_TRUE(resident.insert(range).second);
      std::uint64_t due = 0;
      for (const Use& use : uses) {
        if (use.op < at.ops_done || use.op > at.ops_done + 1) continue;
        ASSERT_TRUE(resident.contains(use.range)) << "op " << use.op;
        due += bytes[use.range];
      }
      ASSERT_LE(window.bytes_ahead(), 120 + due);
    }
    for (const std::uint32_t range : window.clear().release) ASSERT_EQ(resident.erase(range), 1U);
    ASSERT_TRUE(resident.empty());
  }
}

}  // namespace
}  // namespace tt::test
