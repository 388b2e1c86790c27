#include "tracer/memory/experts/token_demand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

// ---------------------------------------------------------------- times

// A generated step whose ops take `ns` each.
Step timed_step(std::uint32_t id, std::int64_t ns, Timing timing = Timing::Fast) {
  Step step = small_step(id);
  step.phase = id == 0 ? Phase::Prompt : Phase::Generate;
  step.n_tokens = id == 0 ? 4 : 1;
  step.first_token = 0;
  step.timing = timing;
  step.begin = step.first_op = Ns{std::int64_t{id} * 1'000'000};
  for (std::size_t op = 0; op < step.op_ends.size(); ++op)
    step.op_ends[op] = Ns{step.begin.v + static_cast<std::int64_t>(op + 1) * ns};
  step.end = step.op_ends.back();
  step.conditions.disk_read_bytes = 0;
  step.conditions.major_faults = 0;
  return step;
}

TokenDemand demand_of(const std::vector<Step>& steps, const std::set<std::uint32_t>& disturbed) {
  const SmallSession session(steps);
  const auto reader = session.reader();
  const auto demand =
      token_demand(reader, 0, [&](const Step& step) { return disturbed.contains(step.id.v); });
  EXPECT_TRUE(demand.has_value());
  return demand.has_value() ? *demand : TokenDemand();
}

// Steps that are faster than the others are taken only if nothing disturbed them: a step of which
// a part was lost would otherwise be the computing time of all.
TEST(TokenDemand, ComputingTimeIsThatOfUndisturbedSteps) {
  std::vector<Step> steps = {timed_step(0, 10), timed_step(1, 20),
                             timed_step(2, 30, Timing::Learned)};
  for (std::uint32_t id = 3; id < 8; ++id) steps.push_back(timed_step(id, 100 + id));
  constexpr double kOps = 5e-9;
  // Not those of the prompt, of the first generated step and of the learned one.
  EXPECT_DOUBLE_EQ(demand_of(steps, {}).compute_seconds, 103 * kOps);
  EXPECT_EQ(demand_of(steps, {}).disturbed_steps, 2U);
  const TokenDemand demand = demand_of(steps, {3, 4, 6});
  EXPECT_DOUBLE_EQ(demand.compute_seconds, 105 * kOps);
  EXPECT_DOUBLE_EQ(demand.unread_seconds, 105 * kOps);
  EXPECT_EQ(demand.disturbed_steps, 5U);
  EXPECT_EQ(demand.prompt.tokens, 4U);
}

TEST(TokenDemand, WithoutAnUndisturbedStepItIsUnknown) {
  const std::vector<Step> steps = {timed_step(0, 10, Timing::Learned), timed_step(1, 20),
                                   timed_step(2, 30)};
  const TokenDemand demand = demand_of(steps, {2});
  EXPECT_EQ(demand.compute_seconds, 0);
  EXPECT_EQ(demand.unread_seconds, 0);
  EXPECT_EQ(demand.disturbed_steps, 2U);
  EXPECT_GT(demand.seconds, 0);  // it was measured, but says nothing of computing
  EXPECT_EQ(demand.prompt.tokens, 0U);
}

// ---------------------------------------------------------------- the least bytes

constexpr std::uint64_t kUnit = 64U << 10;

// One tensor of `experts` slices, of which each token uses one; and a dense weight if `dense`.
FaultReplay replay_of(const std::vector<std::uint32_t>& chosen, std::uint32_t experts, bool dense) {
  WeightOrder order;
  order.experts.push_back({.range = {.file = {.file = 0, .offset = 0, .length = experts * kUnit}},
                           .op = OpId{1},
                           .slice = kUnit,
                           .stride = kUnit,
                           .experts = experts,
                           .list = SlotId{0},
                           .per_token = 1,
                           .routed_by = {}});
  if (dense)
    order.weights.push_back(
        {.range = {.file = {.file = 0, .offset = experts * kUnit, .length = kUnit}},
         .op = OpId{0}});
  FaultReplay::Routing routing;
  for (const std::uint32_t expert : chosen) routing.push_back({{expert}});
  return FaultReplay(order, routing);
}

// The least reads of units: every way of keeping any of them, tried.
std::uint64_t tried_reads(const std::vector<std::uint32_t>& reads, std::uint32_t units, int room) {
  const std::uint32_t sets = 1U << units;
  constexpr std::uint64_t kNever = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint64_t> least(sets, kNever);
  for (std::uint32_t set = 0; set < sets; ++set)
    if (std::popcount(set) <= room) least[set] = 0;
  for (const std::uint32_t unit : reads) {
    std::vector<std::uint64_t> next(sets, kNever);
    for (std::uint32_t set = 0; set < sets; ++set) {
      if (least[set] == kNever) continue;
      const std::uint64_t cost = least[set] + ((set >> unit & 1U) == 0 ? 1 : 0);
      const std::uint32_t all = set | 1U << unit;
      for (std::uint32_t kept = all;; kept = (kept - 1) & all) {
        if (std::popcount(kept) <= room) next[kept] = std::min(next[kept], cost);
        if (kept == 0) break;
      }
    }
    least = std::move(next);
  }
  return *std::ranges::min_element(least);
}

TEST(LeastBytes, AreThoseOfTheBestOfAllWays) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::minstd_rand random(seed + 1);
    constexpr std::uint32_t kSlices = 5;
    const bool dense = seed % 2 == 0;
    std::vector<std::uint32_t> chosen;
    for (int token = 0; token < 24; ++token)
      chosen.push_back(
          static_cast<std::uint32_t>(std::min(random() % kSlices, random() % kSlices)));
    const FaultReplay replay = replay_of(chosen, kSlices, dense);
    std::vector<std::uint32_t> reads;
    for (std::size_t token = chosen.size() / 2; token < chosen.size(); ++token) {
      if (dense) reads.push_back(kSlices);
      reads.push_back(chosen[token]);
    }
    for (int room = 0; room <= 6; ++room) {
      const double tokens = static_cast<double>(chosen.size() - chosen.size() / 2);
      const double bytes = least_bytes_per_token(replay, static_cast<std::uint64_t>(room) * kUnit);
      EXPECT_NEAR(bytes * tokens / kUnit,
                  static_cast<double>(tried_reads(reads, kSlices + 1, room)), 1e-6)
          << room;
      // No way of the replay reads less, whatever a fault reads beside.
      for (const std::uint64_t around : {std::uint64_t{0}, 2 * kUnit, 16 * kUnit})
        EXPECT_GE(replay.bytes_per_token(around, static_cast<std::uint64_t>(room) * kUnit) + 1e-6,
                  bytes)
            << room << " " << around;
    }
  }
}

TEST(LeastBytes, OfADenseModelAreTheWeightsLessTheBudget) {
  WeightOrder order;
  std::uint64_t offset = 0;
  for (std::uint32_t i = 0; i < 50; ++i) {
    const std::uint64_t length = 1000 + 777 * i;
    order.weights.push_back(
        {.range = {.file = {.file = 0, .offset = offset, .length = length}}, .op = OpId{i}});
    offset += length;
  }
  const FaultReplay replay(order);
  for (const std::uint64_t room : {std::uint64_t{0}, offset / 3, offset - 1, offset, 2 * offset})
    EXPECT_DOUBLE_EQ(least_bytes_per_token(replay, room),
                     static_cast<double>(offset - std::min(offset, room)));
}

}  // namespace
}  // namespace tt::test
