// The Mann-Kendall test and the Theil-Sen slope beside their definitions, and trends of sessions.
#include "analysis/sets/mann_kendall.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <format>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "analysis/sets/set_trend.h"

namespace tt {
namespace {

using Values = std::vector<double>;

Values numbered(std::size_t count) {
  Values x(count);
  std::iota(x.begin(), x.end(), 0.0);
  return x;
}

std::int64_t rises_of(const Values& y) {
  std::int64_t rises = 0;
  for (std::size_t j = 0; j < y.size(); ++j)
    for (std::size_t i = 0; i < j; ++i) rises += y[j] > y[i] ? 1 : y[j] < y[i] ? -1 : 0;
  return rises;
}

// Every order of the values; equal ones are told apart by their index.
double p_by_definition(const Values& y) {
  std::vector<std::size_t> order(y.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::int64_t seen = std::abs(rises_of(y));
  double as_far = 0, orders = 0;
  do {
    Values shuffled;
    for (const std::size_t i : order) shuffled.push_back(y[i]);
    as_far += std::abs(rises_of(shuffled)) >= seen;
    ++orders;
  } while (std::ranges::next_permutation(order).found);
  return as_far / orders;
}

TEST(TrendTest, ProbabilityIsTheShareOfAllOrders) {
  std::mt19937 random(7);
  for (std::size_t points = 2; points <= 7; ++points) {
    for (const unsigned values : {1u, 2u, 3u, 1000u}) {  // with and without equal ones
      for (int i = 0; i < 4; ++i) {
        Values y(points);
        for (double& v : y) v = static_cast<double>(random() % values);
        const TrendTest found = trend_of(numbered(points), y);
        EXPECT_EQ(found.rises, rises_of(y));
        EXPECT_NEAR(found.p, p_by_definition(y), 1e-12) << points << " " << values;
      }
    }
  }
}

TEST(TrendTest, KnownProbabilities) {
  EXPECT_NEAR(trend_of(numbered(5), Values{1, 2, 3, 4, 5}).p, 2.0 / 120, 1e-15);
  EXPECT_NEAR(trend_of(numbered(6), Values{6, 5, 4, 3, 2, 1}).p, 2.0 / 720, 1e-15);
  EXPECT_EQ(trend_of(numbered(6), Values(6, 4.0)).p, 1);
  // Hollander and Wolfe's example of canned tuna in the manual of R's cor.test(): one-sided
  // 0.05972.
  const TrendTest tuna = trend_of(Values{41.9, 44.1, 44.4, 44.7, 45.2, 45.9, 50.7, 53.3, 60.1},
                                  Values{2.5, 4.0, 2.6, 3.6, 2.8, 3.1, 5.2, 5.0, 3.8});
  EXPECT_EQ(tuna.rises, 16);
  EXPECT_NEAR(tuna.p, 2 * 0.05972, 1e-5);
}

// With one point less nothing can be significant.
TEST(TrendTest, LeastPointsAreThoseThatCanBeSignificant) {
  EXPECT_LE(trend_of(numbered(kLeastTrendPoints), numbered(kLeastTrendPoints)).p, 0.05);
  EXPECT_GT(trend_of(numbered(kLeastTrendPoints - 1), numbered(kLeastTrendPoints - 1)).p, 0.05);
  EXPECT_TRUE(trend_of(numbered(kLeastTrendPoints), numbered(kLeastTrendPoints)).low.has_value());
  EXPECT_FALSE(trend_of(numbered(kLeastTrendPoints - 1), Values{3, 1, 4, 2}).low.has_value());
  EXPECT_EQ(trend_of(Values{}, Values{}), TrendTest{});
  EXPECT_EQ(trend_of(Values{3}, Values{3}), TrendTest{.points = 1});
}

// Above the exact limit, beside 4,000 random orders.
TEST(TrendTest, ApproximationIsCloseToRandomOrders) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise;
  for (const double slope : {0.0, 0.02, 0.04}) {
    Values y(45);
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = std::round(4 * (noise(random) + slope * static_cast<double>(i)));  // many are equal
    const TrendTest found = trend_of(numbered(y.size()), y);
    constexpr int kOrders = 4000;
    int as_far = 0;
    Values shuffled = y;
    for (int i = 0; i < kOrders; ++i) {
      std::ranges::shuffle(shuffled, random);
      as_far += std::abs(rises_of(shuffled)) >= std::abs(found.rises);
    }
    EXPECT_NEAR(found.p, double{1} * as_far / kOrders, 0.025) << slope;
  }
}

TEST(TrendTest, SlopeIsTheMedianOfAllPairs) {
  const Values x = {0, 1, 4, 5, 9}, y = {3, 4, 9, 8, 50};
  Values slopes;
  for (std::size_t j = 0; j < x.size(); ++j)
    for (std::size_t i = 0; i < j; ++i) slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
  std::ranges::sort(slopes);
  const TrendTest found = trend_of(x, y);
  EXPECT_EQ(found.slope, (slopes[4] + slopes[5]) / 2);
  // Of 5 points only 10 rises of 10 are significant: the interval has all slopes.
  EXPECT_EQ(found.low, slopes.front());
  EXPECT_EQ(found.high, slopes.back());
}

// The interval has the slopes without which the points have no significant trend.
TEST(TrendTest, IntervalIsWhatTheTestDoesNotRefuse) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise;
  for (const std::size_t points : {6u, 9u, 20u, 40u, 60u}) {
    const Values x = numbered(points);
    Values y(points);
    for (std::size_t i = 0; i < points; ++i) y[i] = noise(random) + 0.3 * x[i];
    const TrendTest found = trend_of(x, y);
    ASSERT_TRUE(found.low && found.high);
    const auto p_without = [&](double slope) {
      Values rest(points);
      for (std::size_t i = 0; i < points; ++i) rest[i] = y[i] - slope * x[i];
      return trend_of(x, rest).p;
    };
    constexpr double kStep = 1e-9;
    EXPECT_LE(p_without(*found.low - kStep), 0.05) << points;
    EXPECT_GT(p_without(*found.low + kStep), 0.05) << points;
    EXPECT_GT(p_without(*found.high - kStep), 0.05) << points;
    EXPECT_LE(p_without(*found.high + kStep), 0.05) << points;
  }
}

// Without a trend at most 5 % have a smaller probability than 5 %, and at least 95 % of the
// intervals contain the slope.
TEST(TrendTest, IsRightAsOftenAsItSays) {
  std::mt19937 random(11);
  std::lognormal_distribution<double> times;
  int found = 0, contained = 0;
  constexpr int kTrials = 3000;
  for (int i = 0; i < kTrials; ++i) {
    Values y(8);
    for (double& v : y) v = times(random);
    const TrendTest of = trend_of(numbered(8), y);
    found += of.p <= 0.05;
    contained += *of.low <= 0 && 0 <= *of.high;
  }
  EXPECT_LE(found, kTrials * 0.06);
  EXPECT_GE(found, kTrials * 0.02) << "it would find nothing";
  EXPECT_GE(contained, kTrials * 0.94);
}

// --- sessions

constexpr std::int64_t kDayNs = 86'400'000'000'000;

TrendMember member(int day, int hour, double ms, bool disturbed = false) {
  TrendMember of{.name = std::format("{}-{}", day, hour),
                 .start_utc_ns = day * kDayNs + hour * (kDayNs / 24),
                 .model = "m.gguf",
                 .group = {{"model", "m.gguf"}, {"context.threads", "4"}},
                 .measured = {}};
  of.measured.figures = {
      {.name = "time", .value = ms * 1e6, .disturbed = disturbed},
      {.name = "bytes", .unit = FigureUnit::Size, .value = 100, .disturbed = false}};
  return of;
}

TEST(SetTrend, HasTheMedianOfEachDay) {
  std::vector<TrendMember> members;
  // The last hour of a day in UTC is of that day; no sessions on day 20,003.
  for (const auto& [day, ms] : {std::pair{20'000, 1.0},
                                {20'001, 2.0},
                                {20'002, 3.0},
                                {20'004, 5.0},
                                {20'005, 6.0},
                                {20'006, 7.0}})
    for (const int hour : {23, 0, 12}) members.push_back(member(day, hour, ms + hour * 0.001));
  const SetTrend found = trend_over(members);
  ASSERT_EQ(found.groups.size(), 1u);
  const TrendGroup& group = found.groups[0];
  ASSERT_EQ(group.points.size(), 6u);
  EXPECT_EQ(group.points[0].at, "2024-10-04");
  EXPECT_EQ(group.points[3].at, "2024-10-08");
  EXPECT_EQ(group.points[3].sessions,
            (std::vector<std::string>{"20004-0", "20004-12", "20004-23"}));
  const TrendFigure& time = group.figures[0];
  EXPECT_DOUBLE_EQ(time.points[0].median, 1.012e6);
  EXPECT_NEAR(time.trend->slope, 1e6, 1e-3) << "per day, not per point";
  EXPECT_TRUE(time.significant);
  EXPECT_TRUE(time.sentence.starts_with("Time: rises by 1.00 ms per day (25 %), 95 % interval "))
      << time.sentence;
  EXPECT_EQ(group.figures[1].sentence, "Bytes: no significant trend (p = 1).");
  EXPECT_FALSE(group.figures[1].significant);

  const SetTrend sessions = trend_over(members, {.by = TrendBy::Session});
  EXPECT_EQ(sessions.groups[0].points.size(), 18u);
  EXPECT_EQ(sessions.groups[0].points[1].at, "2024-10-04T12:00:00Z");
  EXPECT_TRUE(sessions.groups[0].figures[0].sentence.contains("per session"));
}

TEST(SetTrend, LeavesOutDisturbedTimesAndNothingElse) {
  std::vector<TrendMember> members;
  for (int day = 20'000; day < 20'006; ++day) {
    members.push_back(member(day, 1, 5));
    members.push_back(member(day, 2, 900, true));
  }
  members.push_back(member(20'006, 3, 800, true));
  const SetTrend found = trend_over(members);
  const TrendGroup& group = found.groups[0];
  EXPECT_EQ(group.disturbed, 7u);
  EXPECT_EQ(group.figures[0].disturbed, 7u);
  EXPECT_EQ(group.figures[0].points[0].median, 5e6);
  EXPECT_EQ(group.figures[0].points[6].samples, 0u) << "the only session of the day";
  EXPECT_EQ(group.figures[0].trend->points, 6u);
  EXPECT_EQ(group.figures[1].disturbed, 0u) << "bytes do not depend on the machine";
  EXPECT_EQ(group.figures[1].trend->points, 7u);
  const SetTrend all = trend_over(members, {.leave_out = LeaveOut::Nothing});
  EXPECT_EQ(all.groups[0].disturbed, 0u);
  EXPECT_EQ(all.groups[0].figures[0].points[0].median, 452.5e6);
  EXPECT_EQ(all.groups[0].figures[0].trend->points, 7u);
}

TEST(SetTrend, DoesNotMixModelsSettingsAndMachines) {
  std::vector<TrendMember> members;
  for (int day = 20'000; day < 20'006; ++day) members.push_back(member(day, 1, 5));
  // Slower, later, and another setting: no trend.
  for (int day = 20'006; day < 20'010; ++day) {
    members.push_back(member(day, 1, 50));
    members.back().group["context.threads"] = "1";
  }
  members.push_back(member(20'011, 1, 1));
  members.back().start_utc_ns = 0;
  members[2].measured.facts = {{"library.llama", "0.7"}};
  members[3].measured.facts = {{"library.llama", "0.8"}};
  const SetTrend found = trend_over(members);
  EXPECT_EQ(found.undated, 1u);
  ASSERT_EQ(found.groups.size(), 2u);
  EXPECT_EQ(found.groups[0].sessions, 6u);
  EXPECT_EQ(found.groups[0].settings, (FactsByName{{"context.threads", "4"}}));
  EXPECT_EQ(found.groups[0].mixed, (std::vector<std::string>{"library.llama"}));
  EXPECT_FALSE(found.groups[0].figures[0].significant);
  EXPECT_TRUE(found.groups[1].too_few());
  EXPECT_EQ(sentences_of(found.groups[1], TrendBy::Day),
            (std::vector<std::string>{"No trend can be told from 4 days: at least 5 are needed."}));
}

}  // namespace
}  // namespace tt
