#include "tracer/memory/plan/fault_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tt::test {
namespace {

constexpr std::uint64_t kMebi = 1U << 20;

WeightOrder dense(std::uint32_t weights, std::uint64_t bytes) {
  WeightOrder order;
  for (std::uint32_t i = 0; i < weights; ++i)
    order.weights.push_back(
        {.range = {.file = {.file = 0, .offset = i * bytes, .length = bytes}}, .op = OpId{i}});
  return order;
}

// One tensor of experts per layer, of which a token uses two.
WeightOrder mixture(std::uint32_t layers, std::uint32_t experts, std::uint64_t slice) {
  WeightOrder order;
  for (std::uint32_t i = 0; i < layers; ++i)
    order.experts.push_back(
        {.range = {.file = {.file = 0, .offset = i * experts * slice, .length = experts * slice}},
         .op = OpId{i},
         .slice = slice,
         .stride = slice,
         .experts = experts,
         .list = SlotId{i},
         .per_token = 2,
         .routed_by = {}});
  return order;
}

TEST(FaultReplay, WhatFitsIsReadOnce) {
  const FaultReplay replay(dense(10, 4 * kMebi));
  EXPECT_EQ(replay.bytes_per_token(1 * kMebi, 42 * kMebi), 0);
}

// The pages that were used longest ago are dropped, and needed next.
TEST(FaultReplay, WhatDoesNotFitIsReadAgain) {
  const FaultReplay replay(dense(10, 4 * kMebi));
  EXPECT_NEAR(replay.bytes_per_token(0, 30 * kMebi), 40 * kMebi, 0.25 * kMebi);
  EXPECT_NEAR(replay.bytes_per_token(2 * kMebi, 30 * kMebi), 40 * kMebi, 8 * kMebi);
}

TEST(FaultReplay, WhatIsKeptIsNotRead) {
  const FaultReplay replay(dense(10, 4 * kMebi));
  std::vector<FileRange> kept;
  for (std::uint64_t i = 0; i < 10; ++i)
    kept.push_back({.file = 0, .offset = i * 4 * kMebi, .length = 2 * kMebi});
  EXPECT_NEAR(replay.bytes_per_token(0, 24 * kMebi, kept), 20 * kMebi, 0.25 * kMebi);
  // In a cache that is smaller than what a fault reads, some of it is dropped before it is used.
  EXPECT_GT(replay.bytes_per_token(16 * kMebi, 24 * kMebi, kept), 24 * kMebi);
}

// A fault for an expert reads those beside it, too.
TEST(FaultReplay, ExpertsAreReadWithThoseAroundThem) {
  const WeightOrder order = mixture(12, 24, kMebi);
  const double used = 12 * 2 * kMebi;
  const FaultReplay replay(order);
  EXPECT_LT(replay.bytes_per_token(0, 140 * kMebi), used);
  EXPECT_GT(replay.bytes_per_token(0, 140 * kMebi), 0.3 * used);
  EXPECT_GT(replay.bytes_per_token(16 * kMebi, 140 * kMebi), 3 * used);
  EXPECT_LE(replay.bytes_per_token(16 * kMebi, 140 * kMebi), 288 * kMebi);
}

// Of a routing that always chooses the same experts nothing is read again.
TEST(FaultReplay, FollowsTheRouting) {
  const WeightOrder order = mixture(4, 24, kMebi);
  const FaultReplay::Routing same(16, {{1, 2}, {3, 4}, {5, 6}, {7, 8}});
  EXPECT_EQ(FaultReplay(order, same).bytes_per_token(0, 20 * kMebi), 0);
  FaultReplay::Routing turns;
  for (std::uint32_t token = 0; token < 16; ++token)
    turns.push_back({{token % 12, 12 + token % 12}, {0, 1}, {0, 1}, {0, 1}});
  // Of the first layer both are new for each token; the others stay.
  EXPECT_NEAR(FaultReplay(order, turns).bytes_per_token(0, 14 * kMebi), 2 * kMebi, 0.5 * kMebi);
}

// Larger pieces, the same answer.
TEST(FaultReplay, ALargeModelIsReplayedInLargerPieces) {
  const FaultReplay replay(dense(100, 128 * kMebi));
  EXPECT_NEAR(replay.bytes_per_token(0, 8000 * kMebi), 12'800.0 * kMebi, 64 * kMebi);
  EXPECT_EQ(replay.bytes_per_token(0, 12'900 * kMebi), 0);
}

}  // namespace
}  // namespace tt::test
