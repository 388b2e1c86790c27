#include "tracer/memory/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tracer/memory/plan/fault_replay.h"

namespace tt::test {
namespace {

constexpr std::uint64_t kMebi = 1U << 20;
constexpr std::uint64_t kBase = 0x7f0000000000;

// Weights one after another in one file, which is mapped at kBase.
std::vector<WeightRange> weights_of(const std::vector<std::uint64_t>& sizes,
                                    std::uint64_t begin = 8192) {
  std::vector<WeightRange> weights;
  for (const std::uint64_t size : sizes) {
    weights.push_back(
        {.file = {.file = 0, .offset = begin, .length = size}, .address = kBase + begin});
    begin += size;
  }
  return weights;
}

// 22 layers of 28 MiB and an output of 50 MiB: about tinyllama-1.1b.
std::vector<WeightRange> tinyllama() {
  std::vector<std::uint64_t> sizes;
  for (int layer = 0; layer < 22; ++layer)
    for (const std::uint64_t kib : {8U, 2304U, 288U, 420U, 2304U, 8U, 6336U, 6336U, 9240U})
      sizes.push_back(kib << 10U);
  sizes.push_back(52'500'000);
  return weights_of(sizes, 36 * kMebi + 4096 + 64);
}

constexpr std::uint64_t kBlock = 2 * kMebi;

MemoryPlan plan_for(const std::vector<WeightRange>& weights, std::uint64_t budget,
                    std::uint64_t block = 0) {
  return plan_memory(
      {.weights = weights, .budget = budget, .speeds = {.blocks = 0.8e9}, .block = block});
}

TEST(MemoryPlan, NothingToDoWhereAllFits) {
  const auto weights = tinyllama();
  const MemoryPlan plan = plan_for(weights, 2000 * kMebi);
  EXPECT_EQ(plan.kind, MemoryPlan::Kind::Fits);
  EXPECT_TRUE(plan.ranges.empty());
  EXPECT_NE(plan.reason.find("nothing to do"), std::string::npos) << plan.reason;
  EXPECT_EQ(plan.bytes_per_token, 0);
}

TEST(MemoryPlan, TooSmallABudgetIsSaid) {
  const MemoryPlan plan = plan_for(weights_of({kMebi, kMebi, 12 * kMebi}), 6 * kMebi);
  EXPECT_EQ(plan.kind, MemoryPlan::Kind::TooSmall);
  EXPECT_TRUE(plan.ranges.empty());
  EXPECT_NE(plan.reason.find("at least 13 MiB"), std::string::npos) << plan.reason;
  EXPECT_NE(plan_for(std::vector(40, weights_of({kMebi}).front()), 6 * kMebi)
                .reason.find("at least 8 MiB"),
            std::string::npos);
}

// What two ops read has to fit the window, so a model with large weights needs a larger one.
TEST(MemoryPlan, WindowGrowsWithLargeWeights) {
  const auto weights = weights_of(std::vector<std::uint64_t>(4, 200 * kMebi));
  const MemoryPlan none = plan_for(weights, 399 * kMebi);
  EXPECT_EQ(none.kind, MemoryPlan::Kind::TooSmall);
  EXPECT_NE(none.reason.find("at least 400 MiB"), std::string::npos) << none.reason;
  // window + 4 * (200 - window / 2) = 450
  const MemoryPlan plan = plan_for(weights, 450 * kMebi);
  ASSERT_EQ(plan.kind, MemoryPlan::Kind::Act);
  EXPECT_LE(plan.pinned + plan.window, 450 * kMebi);
  EXPECT_NEAR(static_cast<double>(plan.window), 350.0 * kMebi, 4.0 * 4096);
  EXPECT_EQ(plan.pinned + plan.streamed, plan.weights);
  // Where the usual window suffices it stays.
  EXPECT_EQ(plan_for(weights, 790 * kMebi).window, plan_for(tinyllama(), 380 * kMebi).window);
}

TEST(MemoryPlan, KeepsBudgetAndReadsLittleMoreThanTheLeast) {
  const auto weights = tinyllama();
  for (const std::uint64_t block : {std::uint64_t{0}, kBlock}) {
    for (const std::uint64_t budget : {100 * kMebi, 200 * kMebi, 380 * kMebi, 560 * kMebi}) {
      SCOPED_TRACE(std::to_string(budget / kMebi) + (block > 0 ? " in blocks" : ""));
      const MemoryPlan plan = plan_for(weights, budget, block);
      ASSERT_EQ(plan.kind, MemoryPlan::Kind::Act);
      EXPECT_LE(plan.pinned + plan.window, budget);
      EXPECT_GE(plan.pinned + plan.window + std::max(block, kMebi), budget);
      EXPECT_EQ(plan.bytes_per_token, static_cast<double>(plan.streamed));
      EXPECT_NEAR(plan.tokens_per_second, 0.8e9 / static_cast<double>(plan.streamed), 1e-6);
      EXPECT_LT(plan.plain_tokens_per_second, plan.tokens_per_second);
    }
  }
  const MemoryPlan plan = plan_for(weights, 380 * kMebi);
  const std::uint64_t least = plan.weights - 380 * kMebi;
  EXPECT_LT(static_cast<double>(plan.streamed), 1.12 * static_cast<double>(least));
  const MemoryPlan further = plan_memory({.weights = weights,
                                          .budget = 380 * kMebi,
                                          .speeds = {.blocks = 0.8e9},
                                          .window_seconds = 4 * kWindowSeconds});
  EXPECT_NEAR(static_cast<double>(further.window), 4 * kWindowSeconds * 0.8e9, 4096);
  EXPECT_GT(further.window, plan.window);
  EXPECT_LE(further.pinned + further.window, 380 * kMebi);
}

// Between any two streamed ranges there are pinned ones to compute with.
TEST(MemoryPlan, SpreadsPinnedBytesOverTheWeights) {
  const auto weights = tinyllama();
  const MemoryPlan plan = plan_for(weights, 380 * kMebi);
  std::vector<std::uint64_t> pinned(weights.size()), streamed(weights.size());
  for (const PlannedRange& range : plan.ranges)
    (range.pinned ? pinned : streamed)[range.group] += range.pages.length;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t length = weights[i].file.length;
    if (length < 256 * 1024) {
      EXPECT_EQ(streamed[i], 0U) << i;
    } else if (length > kMebi) {
      EXPECT_GT(pinned[i], length / 4) << i;
      EXPECT_GE(streamed[i] + page_bytes(), std::min(length / 5, plan.window / 2)) << i;
    }
  }
}

// Blocks of the file, in one weight each and spread over them, and the pages beside them only where
// blocks are not enough.
TEST(MemoryPlan, StreamsBlocksBeforeOtherPages) {
  const auto weights = tinyllama();
  const MemoryPlan plan = plan_for(weights, 380 * kMebi, kBlock);
  std::uint64_t pinned_between = 0;
  for (const PlannedRange& range : plan.ranges) {
    if (range.pinned) {
      pinned_between += range.pages.length;
      continue;
    }
    EXPECT_EQ(range.pages.offset % kBlock, 0U);
    EXPECT_EQ(range.pages.length, kBlock);
    // Of the last weight, which is large, only what fits the window is streamed.
    if (range.group + 1 < weights.size()) {
      EXPECT_LT(std::exchange(pinned_between, 0), 20 * kMebi) << "a gap without reads";
    }
  }
  // All blocks are not enough here.
  const MemoryPlan small = plan_for(weights, 100 * kMebi, kBlock);
  std::uint64_t blocks = 0, pages = 0;
  for (const PlannedRange& range : small.ranges)
    if (!range.pinned) (range.pages.length == kBlock ? blocks : pages) += range.pages.length;
  EXPECT_GT(blocks, 300 * kMebi);
  EXPECT_GT(pages, 50 * kMebi);
}

// The pages of each weight are planned once, in order, and a streamed range contains no byte of
// another weight.
TEST(MemoryPlan, RangesAreWholePagesOfTheirWeight) {
  std::mt19937 random(7);  // NOLINT: a fixed seed
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    std::vector<std::uint64_t> sizes;
    for (int i = 0; i < 30; ++i) sizes.push_back(1 + random() % (i % 3 == 0 ? 9000 : 20'000'000));
    const auto weights = weights_of(sizes, 32 * (random() % 1000));
    std::uint64_t all = 0;
    for (const std::uint64_t size : sizes) all += size;
    const std::uint64_t budget = 8 * kMebi + random() % all;
    const std::uint64_t block = round % 2 == 0 ? 0 : kBlock;
    const MemoryPlan plan = plan_for(weights, budget, block);
    std::uint64_t pinned = 0, streamed = 0;
    for (std::size_t i = 0; i < plan.ranges.size(); ++i) {
      const auto& [pages, group, is_pinned] = plan.ranges[i];
      ASSERT_EQ(pages.address % page_bytes(), 0U);
      ASSERT_EQ(pages.offset % page_bytes(), 0U);
      ASSERT_EQ(pages.length % page_bytes(), 0U);
      ASSERT_GT(pages.length, 0U);
      ASSERT_EQ(pages.address - pages.offset, kBase);
      (is_pinned ? pinned : streamed) += pages.length;
      std::uint64_t begin = UINT64_MAX, end = 0;
      for (std::size_t weight = 0; weight < weights.size(); ++weight) {
        if (plan.group_of[weight] != group) continue;
        begin = std::min(begin, weights[weight].address);
        end = std::max(end, weights[weight].address + weights[weight].file.length);
      }
      if (is_pinned) {
        ASSERT_GT(pages.address + pages.length, begin);
        ASSERT_LT(pages.address, end);
      } else {
        ASSERT_GE(pages.address, begin);
        ASSERT_LE(pages.address + pages.length, end);
      }
      if (i > 0 && plan.ranges[i - 1].group == group) {
        ASSERT_EQ(plan.ranges[i - 1].pages.address + plan.ranges[i - 1].pages.length,
                  pages.address);
        ASSERT_TRUE(block > 0 || is_pinned <= plan.ranges[i - 1].pinned) << "pinned first";
      }
    }
    ASSERT_EQ(pinned, plan.pinned);
    ASSERT_EQ(streamed, plan.streamed);
    if (plan.kind == MemoryPlan::Kind::Act) {
      ASSERT_LE(pinned + plan.window, budget);
    }
  }
}

// Each of the weights is too small to be read alone.
TEST(MemoryPlan, StreamsSmallWeightsInGroups) {
  std::vector<std::uint64_t> sizes(500, 100U << 10);
  const auto weights = weights_of(sizes, 4096 + 64);
  const MemoryPlan plan = plan_for(weights, 30 * kMebi);
  ASSERT_EQ(plan.kind, MemoryPlan::Kind::Act);
  EXPECT_LE(plan.pinned + plan.window, 30 * kMebi);
  const std::uint64_t least = plan.weights - 30 * kMebi;
  EXPECT_LT(static_cast<double>(plan.streamed), 1.6 * static_cast<double>(least));
  ASSERT_EQ(plan.group_of.size(), weights.size());
  EXPECT_TRUE(std::ranges::is_sorted(plan.group_of));
  for (const PlannedRange& range : plan.ranges) EXPECT_LE(range.pages.length, kMebi);
  // Used in another order than they are in the file, and with a large one between.
  std::vector<WeightRange> mixed = weights_of({100U << 10, 100U << 10, 4 * kMebi, 100U << 10});
  std::swap(mixed[0], mixed[3]);
  EXPECT_EQ(plan_for(mixed, 4200U << 10).group_of, (std::vector<std::uint32_t>{0, 1, 2, 1}));
}

TEST(MemoryPlan, OneStrategyAlone) {
  const auto weights = tinyllama();
  PlanInput input{.weights = weights, .budget = 380 * kMebi, .speeds = {.blocks = 0.8e9}};
  input.prefetch = false;
  const MemoryPlan pin = plan_memory(input);
  EXPECT_NE(pin.reason.find("Pinning alone can be slower"), std::string::npos) << pin.reason;
  input.prefetch = true;
  input.pin = false;
  const MemoryPlan prefetch = plan_memory(input);
  // What is too small to be read alone, or does not fit the window of one op.
  std::uint64_t kept = 0;
  for (const WeightRange& weight : weights) {
    const std::uint64_t length = weight.file.length;
    kept += length < 256U << 10 ? length : length - std::min(length, prefetch.window / 2);
  }
  EXPECT_NEAR(static_cast<double>(prefetch.pinned), static_cast<double>(kept),
              static_cast<double>(2 * page_bytes() * weights.size()));
  EXPECT_GT(prefetch.streamed, 500 * kMebi);
}

TEST(MemoryPlan, PinsDenseWeightsBeforeExperts) {
  const auto weights = weights_of({10 * kMebi, 20 * kMebi, 10 * kMebi});
  const MemoryPlan plan = plan_memory({.weights = weights,
                                       .expert_bytes = 400 * kMebi,
                                       .expert_bytes_per_token = 100 * kMebi,
                                       .budget = 220 * kMebi,
                                       .speeds = {.blocks = 1e9}});
  EXPECT_EQ(plan.kind, MemoryPlan::Kind::Act);
  EXPECT_EQ(plan.streamed, 0U);
  EXPECT_GE(plan.pinned, 40 * kMebi);
  EXPECT_EQ(plan.expert_cache + plan.pinned + plan.window, 220 * kMebi);
  EXPECT_GT(plan.bytes_per_token, 0);
  EXPECT_LT(plan.bytes_per_token, 100.0 * kMebi);
}

// Where nothing is read ahead, page faults read what they read in the replay.
TEST(MemoryPlan, FaultsReadWhatTheReplayReads) {
  const auto weights = tinyllama();
  WeightOrder order;
  for (std::uint32_t i = 0; i < weights.size(); ++i)
    order.weights.push_back({.range = weights[i], .op = OpId{i}});
  const FaultReplay replay(order);
  PlanInput input{
      .weights = weights,
      .budget = 380 * kMebi,
      .prefetch = false,
      .speeds = {.blocks = 2e9,
                 .faults = {.bytes = 16 * kMebi, .bytes_per_second = 1e9, .map_seconds = 1e-10}},
      .faulted = [&](std::uint64_t room, std::span<const FileRange> kept) {
        return replay.bytes_per_token(16 * kMebi, room, kept);
      }};
  const MemoryPlan pin = plan_memory(input);
  EXPECT_EQ(pin.plain_bytes_per_token, replay.bytes_per_token(16 * kMebi, 380 * kMebi));
  EXPECT_LT(pin.bytes_per_token, pin.plain_bytes_per_token);
  EXPECT_GT(pin.bytes_per_token, static_cast<double>(pin.streamed));
  EXPECT_NEAR(pin.plain_tokens_per_second,
              1 / (pin.plain_bytes_per_token / 1e9 + static_cast<double>(pin.weights) * 1e-10),
              1e-6);
  // Read ahead, a token reads what is not pinned, at the speed of the disk.
  input.prefetch = true;
  const MemoryPlan both = plan_memory(input);
  EXPECT_EQ(both.bytes_per_token, static_cast<double>(both.streamed));
  EXPECT_NEAR(both.tokens_per_second, 2e9 / both.bytes_per_token, 1e-6);
}

// Without a replay page faults read what is used.
TEST(MemoryPlan, FaultsReadWhatIsUsed) {
  const auto weights = weights_of({10 * kMebi, 20 * kMebi, 10 * kMebi});
  const MemoryPlan plan = plan_memory({.weights = weights,
                                       .expert_bytes = 400 * kMebi,
                                       .expert_bytes_per_token = 40 * kMebi,
                                       .budget = 220 * kMebi,
                                       .prefetch = false,
                                       .speeds = {.blocks = 2e9}});
  EXPECT_NEAR(plan.plain_bytes_per_token,
              static_cast<double>(plan.weights - plan.experts) + (1 - 110.0 / 400) * 40 * kMebi, 1);
}

// Computing overlaps with what is read ahead, and waits for experts and for page faults.
TEST(MemoryPlan, ComputingWaitsForExperts) {
  EXPECT_DOUBLE_EQ(token_rate({.blocks = 2e9}, 1, {.blocks = 1e9}), 1 / 2.0);
  EXPECT_DOUBLE_EQ(token_rate({.blocks = 2e9}, 3, {.blocks = 1e9}), 1 / 3.0);
  EXPECT_DOUBLE_EQ(token_rate({.blocks = 2e9, .experts = 1e9}, 3, {.blocks = 1e9}), 1 / 4.0);
  EXPECT_DOUBLE_EQ(token_rate({.faults = 1e9}, 3, {.blocks = 1e9}), 1 / 4.0);
  EXPECT_DOUBLE_EQ(
      token_rate({.blocks = 2e9, .experts = 1e9}, 3, {.blocks = 1e9, .experts = 0.5e9}), 1 / 5.0);
  EXPECT_DOUBLE_EQ(
      token_rate({.faults = 1e9, .faults_used = 0.5e9}, 3,
                 {.blocks = 1e9, .faults = {.bytes_per_second = 0.5e9, .map_seconds = 2e-9}}),
      1 / 6.0);
  EXPECT_DOUBLE_EQ(
      token_rate({.faults = 1e9}, 3,
                 {.blocks = 1e9, .faults = {.bytes_per_second = 0.25e9, .with_computing = true}}),
      1 / 4.0);
  // Pages take processor time, which computing then does not have.
  EXPECT_DOUBLE_EQ(
      token_rate({.pages = 2e9}, 1, {.blocks = 1e9, .pages = 0.5e9, .page_seconds = 0.25e-9}),
      1 / 4.5);
  EXPECT_DOUBLE_EQ(
      token_rate({.pages = 2e9}, 1, {.blocks = 1e9, .pages = 0.5e9, .page_seconds = 1e-9}),
      1 / 5.0);
  EXPECT_DOUBLE_EQ(token_rate({}, 4, {}), 1 / 4.0);
  EXPECT_EQ(token_rate({.blocks = 1}, 4, {}), 0);  // the speed of the disk is unknown
  EXPECT_EQ(token_rate({}, 0, {.blocks = 1e9}), 0);
}

TEST(MemoryPlan, ComputeTimeLimitsThePrediction) {
  const auto weights = tinyllama();
  const MemoryPlan plan = plan_memory({.weights = weights,
                                       .budget = 380 * kMebi,
                                       .speeds = {.blocks = 100e9},
                                       .compute_seconds = 0.03});
  EXPECT_NEAR(plan.tokens_per_second, 1 / 0.03, 1e-6);
}

}  // namespace
}  // namespace tt::test
