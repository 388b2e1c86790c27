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

// A machine whose processors are slow for half of the time, by 1.8: only the fastest rounds tell.
TEST(SpeedVerdict, TellsSlowerTimesOnAMachineOfTwoSpeeds) {
  constexpr int kRuns = 100, kRounds = 40;
  int equal = 0, slower = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::mt19937 random(static_cast<unsigned>(run));
    std::normal_distribution<double> spread(0, 0.015);
    std::uniform_real_distribution<double> uniform(0, 1);
    const auto times = [&](double factor) {
      std::vector<double> all;
      for (int round = 0; round < kRounds; ++round)
        all.push_back(100 * factor * std::exp(spread(random)) * (uniform(random) < 0.5 ? 1.8 : 1));
      return all;
    };
    const std::vector<double> before = times(1);
    equal += compare_samples(before, times(1), 0.01).verdict == SpeedVerdict::Equal ? 1 : 0;
    slower += compare_samples(before, times(1.05), 0.01).verdict == SpeedVerdict::Slower ? 1 : 0;
  }
  EXPECT_GE(equal, kRuns * 95 / 100);
  EXPECT_GE(slower, kRuns * 95 / 100);
}

TEST(SpeedVerdict, TheFastestSamplesCount) {
  std::vector<double> times(40, 1000);
  for (const std::size_t fast : {3U, 10U, 11U, 20U, 33U, 39U}) times[fast] = 100;
  EXPECT_NEAR(fastest(times), 100, 1e-9);
  times[3] = 6400;  // one of those that are left is 1000
  EXPECT_NEAR(fastest(times), 100 * std::pow(10, 1.0 / 6), 1e-9);
  EXPECT_NEAR(fastest(std::span(times).subspan(9, 2)), std::sqrt(1000.0 * 100), 1e-9);
  EXPECT_EQ(fastest({}), 0);
}

// A few fast samples on one side do not make it faster; a shift of all does.
TEST(SpeedVerdict, MediansCount) {
  std::vector<double> before, after, slower;
  for (int i = 0; i < 40; ++i) {
    const double time = 100 + i % 5;
    before.push_back(time);
    after.push_back(i < 6 ? 50 : time);
    slower.push_back(1.1 * time);
  }
  EXPECT_EQ(compare_samples(before, after, 0.01).verdict, SpeedVerdict::Faster);
  EXPECT_EQ(compare_medians(before, after, 0.01).verdict, SpeedVerdict::Equal);
  EXPECT_EQ(compare_medians(before, slower, 0.01).verdict, SpeedVerdict::Slower);
  EXPECT_NEAR(compare_medians(before, slower, 0.01).ratio, 1.1, 1e-9);
  EXPECT_FALSE(compare_medians(std::span(before).first(kLeastSamples - 1), slower, 0).low);
}

TEST(SpeedVerdict, IntervalsNeedEnoughSamples) {
  std::vector<double> before, after;
  for (std::size_t n = 1; n <= kLeastSamples; ++n) {
    before.push_back(100 + static_cast<double>(n));
    after.push_back(150 + static_cast<double>(n));
    const SpeedChange change = compare_samples(before, after, 0);
    EXPECT_EQ(change.low.has_value(), n == kLeastSamples);
    EXPECT_EQ(change.verdict, n == kLeastSamples ? SpeedVerdict::Slower : SpeedVerdict::Equal);
  }
  // The same samples give the same interval, which contains the ratio; a higher confidence, a wider
  // one.
  const SpeedChange once = compare_samples(before, after, 0),
                    again = compare_samples(before, after, 0);
  EXPECT_EQ(*once.low, *again.low);
  EXPECT_LT(*once.low, once.ratio);
  EXPECT_GT(*once.high, once.ratio);
  const SpeedChange wider = compare_samples(before, after, 0, 0.999);
  EXPECT_LE(*wider.low, *once.low);
  EXPECT_GE(*wider.high, *once.high);
}

// Signs of n differences: 2 of 2^n are as far out. 2 / 2^7 > 1 %, 2 / 2^8 < 1 %.
TEST(SpeedVerdict, IntervalOfPairsHasTheExactProbability) {
  std::vector<double> before, after;
  for (int n = 1; n <= 8; ++n) {
    before.push_back(100);
    after.push_back(102 + n);
    EXPECT_EQ(compare_pairs(before, after, 0).low.has_value(), n == 8);
  }
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
  EXPECT_STREQ(to_text(SpeedVerdict::Equal), "no significant difference");
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
