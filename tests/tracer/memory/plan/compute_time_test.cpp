#include "tracer/memory/plan/compute_time.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tt::test {
namespace {

constexpr std::uint64_t kLarge = 1U << 20;  // bytes

TEST(ComputeTime, IsTheSumOfOpsThatDidNotWait) {
  EXPECT_EQ(compute_time({}, {}), 0);
  EXPECT_EQ(compute_time(std::vector<std::int64_t>{5, 7, -1}, {}), 12);
  const std::vector<std::int64_t> ns{10'000, 100, 19'000, 12'000};
  EXPECT_EQ(compute_time(ns, std::vector<std::uint64_t>{kLarge, 0, kLarge, kLarge}), 41'100);
}

TEST(ComputeTime, LeavesOutWhatOpsWaitedInEveryStep) {
  std::vector<std::int64_t> ns;
  std::vector<std::uint64_t> bytes;
  for (std::uint64_t i = 0; i < 30; ++i) {  // a third of the ops has its weights in memory
    bytes.push_back((1 + i % 2) * kLarge);
    ns.push_back(static_cast<std::int64_t>((1 + i % 2) * 10'000 + (i % 3 == 0 ? 0 : 5'000'000)));
    bytes.push_back(0);
    ns.push_back(1'000);
  }
  EXPECT_EQ(compute_time(ns, bytes), 30 * 1'000 + 15 * 30'000);
  // Small weights do not say how fast bytes are, and their ops count as they are.
  ns.push_back(9'000'000);
  bytes.push_back(4096);
  EXPECT_EQ(compute_time(ns, bytes), 9'000'000 + 30 * 1'000 + 15 * 30'000);
}

}  // namespace
}  // namespace tt::test
