// Medians, intervals and verdicts of two sets of samples, beside the definitions.
#include "analysis/speed/set_verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace tt {
namespace {

using Samples = std::vector<double>;

// Pairs in which the right value is greater; half for equal ones.
double wins(const Samples& left, const Samples& right) {
  double count = 0;
  for (const double a : left)
    for (const double b : right) count += b > a ? 1 : b == a ? 0.5 : 0;
  return count;
}

// Every way to divide the samples into two sets of these sizes.
double p_by_definition(const Samples& left, const Samples& right) {
  Samples all = left;
  all.insert(all.end(), right.begin(), right.end());
  const double mean = static_cast<double>(left.size() * right.size()) / 2;
  const double seen = std::abs(wins(left, right) - mean);
  double as_far = 0, ways = 0;
  for (std::uint32_t set = 0; set < (1u << all.size()); ++set) {
    if (static_cast<std::size_t>(std::popcount(set)) != left.size()) continue;
    Samples a, b;
    for (std::size_t i = 0; i < all.size(); ++i) ((set >> i & 1) != 0 ? a : b).push_back(all[i]);
    ++ways;
    if (std::abs(wins(a, b) - mean) >= seen - 1e-9) ++as_far;
  }
  return as_far / ways;
}

TEST(SetVerdict, ProbabilityIsTheShareOfAllDivisions) {
  std::mt19937 random(7);
  for (std::size_t left = 1; left <= 6; ++left) {
    for (std::size_t right = 1; right <= 6; ++right) {
      for (const unsigned values : {3u, 1000u}) {  // with and without equal ones
        Samples a(left), b(right);
        for (double& v : a) v = static_cast<double>(random() % values);
        for (double& v : b) v = static_cast<double>(random() % values + values / 4);
        EXPECT_NEAR(rank_sum_p(a, b), p_by_definition(a, b), 1e-12);
        EXPECT_EQ(rank_sum_p(a, b), rank_sum_p(b, a));
      }
    }
  }
}

// R: wilcox.test(1:5, 6:10)$p.value is 0.007936508; 2 / choose(8, 4) is 0.02857143.
TEST(SetVerdict, KnownProbabilities) {
  EXPECT_NEAR(rank_sum_p(Samples{1, 2, 3, 4, 5}, Samples{6, 7, 8, 9, 10}), 0.007936508, 1e-9);
  EXPECT_NEAR(rank_sum_p(Samples{1, 2, 3, 4}, Samples{5, 6, 7, 8}), 0.02857143, 1e-8);
  EXPECT_EQ(rank_sum_p(Samples{1}, Samples{2}), 1);
  EXPECT_EQ(rank_sum_p(Samples{2, 2, 2}, Samples{2, 2, 2}), 1);
  EXPECT_EQ(rank_sum_p(Samples{}, Samples{2, 2, 2}), 1);
}

// Above the exact limit, beside 8,000 random divisions.
TEST(SetVerdict, ApproximationIsCloseToRandomDivisions) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise;
  for (const double shift : {0.0, 0.3, 0.6}) {
    Samples a(30), b(25);
    for (double& v : a) v = noise(random);
    for (double& v : b) v = noise(random) + shift;
    Samples all = a;
    all.insert(all.end(), b.begin(), b.end());
    const double mean = static_cast<double>(a.size() * b.size()) / 2;
    const double seen = std::abs(wins(a, b) - mean);
    constexpr int kDivisions = 8000;
    int as_far = 0;
    for (int i = 0; i < kDivisions; ++i) {
      std::ranges::shuffle(all, random);
      as_far += std::abs(wins({all.begin(), all.begin() + 30}, {all.begin() + 30, all.end()}) -
                         mean) >= seen;
    }
    EXPECT_NEAR(rank_sum_p(a, b), double{1} * as_far / kDivisions, 0.018) << shift;
  }
}

// Of samples of one distribution, at most 5 % have a smaller probability than 5 %, and at least
// 95 % of the intervals contain the median.
TEST(SetVerdict, IsRightAsOftenAsItSays) {
  std::mt19937 random(11);
  std::lognormal_distribution<double> times;  // median 1
  int found = 0, contained = 0;
  constexpr int kTrials = 4000;
  for (int i = 0; i < kTrials; ++i) {
    Samples a(7), b(9);
    for (double& v : a) v = times(random);
    for (double& v : b) v = times(random);
    found += rank_sum_p(a, b) <= 0.05;
    const SampleMedian median = median_of(b);
    contained += *median.low <= 1 && 1 <= *median.high;
  }
  EXPECT_LE(found, kTrials * 0.06);
  EXPECT_GE(found, kTrials * 0.03) << "it would find nothing";
  EXPECT_GE(contained, kTrials * 0.94);
}

TEST(SetVerdict, MedianAndItsInterval) {
  EXPECT_EQ(median_of({}), SampleMedian{});
  EXPECT_EQ(median_of({3, 1}).median, 2);
  EXPECT_FALSE(median_of({1, 2, 3, 4, 5}).low.has_value()) << "at most 93.75 %";
  const SampleMedian six = median_of({6, 5, 4, 3, 2, 1});
  EXPECT_EQ(six.median, 3.5);
  EXPECT_EQ(six.low, 1);
  EXPECT_EQ(six.high, 6);
  const SampleMedian nine = median_of({1, 2, 3, 4, 5, 6, 7, 8, 9});  // binom.test: ranks 2 and 8
  EXPECT_EQ(nine.low, 2);
  EXPECT_EQ(nine.high, 8);
}

TEST(SetVerdict, ManyComparisonsAreJudgedTogether) {
  EXPECT_EQ(differ(Samples{0.01, 0.5, 0.02, 0.9}), (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(differ(Samples{0.03, 0.5, 0.04, 0.9}), (std::vector<bool>(4, false)));
  EXPECT_EQ(differ(Samples(20, 0.008)), std::vector<bool>(20, true));
  EXPECT_TRUE(differ(Samples{}).empty());
}

}  // namespace
}  // namespace tt
