// Verdicts on two sets of times: synthetic times of known distributions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "analysis/speed/speed_verdict.h"

namespace tt {
namespace {

// Times as of a machine that does other work, too: each round has a speed of its own (1 %: the
// addresses of its memory, the frequency) and is disturbed in one of 20 cases, by up to 30 %; each
// time varies by 1 %.
class NoisyMachine {
 public:
  explicit NoisyMachine(unsigned seed) : random_(seed) {}
  void next_round() { round_ = spread(0.01) * disturbed(); }
  double time(double factor) { return 100 * factor * round_ * spread(0.01); }

 private:
  double spread(double sigma) {
    return std::exp(std::normal_distribution<double>(0, sigma)(random_));
  }
  double disturbed() {
    std::uniform_real_distribution<double> from(0, 1);
    return from(random_) < 0.05 ? 1 + 0.3 * from(random_) : 1;
  }
  std::mt19937 random_;
  double round_ = 1;
};

struct Found {
  int equal = 0, slower = 0, faster = 0;
};

// Compares `runs` times 15 rounds with 15 that take `factor` as long: taken in pairs, or one after
// the other.
Found verdicts(int runs, double factor, bool in_pairs) {
  Found found;
  for (int run = 0; run < runs; ++run) {
    NoisyMachine machine(static_cast<unsigned>(run) + (in_pairs ? 1000U : 0U));
    std::vector<double> a, again, b;
    for (int round = 0; round < 15; ++round) {
      machine.next_round();
      a.push_back(machine.time(1));
      again.push_back(machine.time(1));
      if (!in_pairs) machine.next_round();
      b.push_back(machine.time(factor));
    }
    const double noise = noise_floor(a, again);
    const SpeedChange change = in_pairs ? compare_pairs(a, b, noise) : compare_samples(a, b, noise);
    found.equal += change.verdict == SpeedVerdict::Equal ? 1 : 0;
    found.slower += change.verdict == SpeedVerdict::Slower ? 1 : 0;
    found.faster += change.verdict == SpeedVerdict::Faster ? 1 : 0;
  }
  return found;
}

TEST(SpeedVerdict, TellsEqualTimesFromSlowerOnes) {
  constexpr int kRuns = 400;
  for (const bool in_pairs : {false, true}) {
    SCOPED_TRACE(in_pairs);
    EXPECT_GE(verdicts(kRuns, 1, in_pairs).equal, kRuns * 98 / 100);
    const Found slower = verdicts(kRuns, 1.05, in_pairs), faster = verdicts(kRuns, 0.95, in_pairs);
    EXPECT_GE(slower.slower, kRuns * 95 / 100);
    EXPECT_EQ(slower.faster, 0);
    EXPECT_GE(faster.faster, kRuns * 95 / 100);
    EXPECT_EQ(faster.slower, 0);
  }
}

// Counts all assignments of the times to the two sides, or all signs of the differences: the same
// probability without a formula.
TEST(SpeedVerdict, IntervalHasTheExactProbability) {
  // 5 + 5: only 1 of 252 assignments, and its mirror image, is as far out: 0.8 %. So the interval
  // of 5 and 5 is that of all ratios, and 4 and 4 (2 of 70) have none.
  const std::vector<double> a = {100, 101, 102, 103, 104}, b = {110, 111, 112, 113, 114};
  const SpeedChange five = compare_samples(a, b, 0);
  ASSERT_TRUE(five.low.has_value());
  EXPECT_NEAR(*five.low, 110.0 / 104, 1e-12);
  EXPECT_NEAR(*five.high, 114.0 / 100, 1e-12);
  EXPECT_EQ(five.verdict, SpeedVerdict::Slower);
  const std::span four(a.data(), 4), other(b.data(), 4);
  EXPECT_FALSE(compare_samples(four, other, 0).low.has_value());
  EXPECT_EQ(compare_samples(four, other, 0).verdict, SpeedVerdict::Equal);

  // Signs of n differences: 2 of 2^n are as far out. 2 / 2^7 > 1 %, 2 / 2^8 < 1 %.
  std::vector<double> before, after;
  for (int n = 1; n <= 8; ++n) {
    before.push_back(100);
    after.push_back(102 + n);
    EXPECT_EQ(compare_pairs(before, after, 0).low.has_value(), n == 8);
  }

  // How often the interval of equal times excludes 1, for all orders of 5 + 6 times.
  std::vector<int> side = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
  int orders = 0, excluded = 0;
  do {
    std::vector<double> left, right;
    for (std::size_t i = 0; i < side.size(); ++i)
      (side[i] == 0 ? left : right).push_back(100 + static_cast<double>(i));
    ++orders;
    excluded += compare_samples(left, right, 0).verdict == SpeedVerdict::Equal ? 0 : 1;
  } while (std::ranges::next_permutation(side).found);
  EXPECT_EQ(orders, 462);
  // P(U = 0) + P(U = 1) is 2 of 462 at each end; a third one would exceed 0.5 %.
  EXPECT_EQ(excluded, 4);
}

TEST(SpeedVerdict, NormalApproximationContinuesTheExactDistribution) {
  NoisyMachine machine(1);
  // 50 x 50 is exact, 50 x 51 is not.
  std::vector<double> a, b;
  for (int i = 0; i < 50; ++i) a.push_back(machine.time(1));
  for (int i = 0; i < 51; ++i) b.push_back(machine.time(1.03));
  const SpeedChange exact = compare_samples(a, std::span(b).first(50), 0);
  const SpeedChange normal = compare_samples(a, b, 0);
  EXPECT_NEAR(*exact.low, *normal.low, 0.002);
  EXPECT_NEAR(*exact.high, *normal.high, 0.002);
}

TEST(SpeedVerdict, NoiseFloorHidesWhatEqualTimesShow) {
  const std::vector<double> a = {100, 100, 100, 100, 100, 100, 100, 100},
                            b = {103, 104, 103, 104, 103, 104, 103, 104};
  EXPECT_DOUBLE_EQ(noise_floor(a, a), kLeastNoise);
  EXPECT_NEAR(noise_floor(a, b), 0.03, 0.001);
  EXPECT_NEAR(noise_floor(b, a), 0.03, 0.001);
  EXPECT_EQ(compare_samples(a, b, 0.005).verdict, SpeedVerdict::Slower);
  EXPECT_EQ(compare_samples(a, b, 0.05).verdict, SpeedVerdict::Equal);
  EXPECT_EQ(compare_pairs(b, a, 0.005).verdict, SpeedVerdict::Faster);
  EXPECT_EQ(compare_pairs(b, a, 0.05).verdict, SpeedVerdict::Equal);
  EXPECT_DOUBLE_EQ(noise_floor({}, {}), kLeastNoise);
  EXPECT_EQ(compare_samples({}, {}, 0).verdict, SpeedVerdict::Equal);
  EXPECT_STREQ(to_text(SpeedVerdict::Equal), "not to be told apart");
}

TEST(SpeedVerdict, SpreadUsesTheRuleForQuantiles) {
  const std::vector<double> values = {3, 1, 2};
  const SampleSpread spread = sample_spread(values);
  EXPECT_EQ(spread.median, 2);
  EXPECT_EQ(spread.p5, 1);
  EXPECT_EQ(spread.p95, 3);
  EXPECT_EQ(spread.mean, 2);
  EXPECT_EQ(spread.stddev, 1);
  EXPECT_EQ(sample_spread({}).median, 0);
}

}  // namespace
}  // namespace tt
