#include "tracer/memory/experts/expert_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tt::test {
namespace {

using Experts = std::vector<std::uint32_t>;

Experts used(ExpertCache& cache, std::size_t layer, const Experts& experts) {
  const auto missing = cache.use(layer, experts);
  return {missing.begin(), missing.end()};
}
Experts trimmed(ExpertCache& cache, std::size_t layer) {
  const auto gone = cache.trim(layer);
  return {gone.begin(), gone.end()};
}

TEST(ExpertCache, SharesCapacityAmongLayers) {
  const std::vector<ExpertCache::Layer> layers = {{.experts = 8, .bytes = 100},
                                                  {.experts = 2, .bytes = 100}};
  const ExpertCache cache(layers, 700);
  EXPECT_EQ(cache.slots(0), 3U);
  EXPECT_EQ(cache.slots(1), 2U) << "no more than it has";
}

TEST(ExpertCache, KeepsWhatIsUsedMost) {
  const std::vector<ExpertCache::Layer> layers = {{.experts = 8, .bytes = 10}};
  ExpertCache cache(layers, 20);
  EXPECT_EQ(used(cache, 0, {1, 2}), (Experts{1, 2}));
  EXPECT_EQ(trimmed(cache, 0), Experts{});
  EXPECT_EQ(used(cache, 0, {1, 3}), (Experts{3}));
  EXPECT_EQ(cache.resident_bytes(), 30U) << "all experts of the running layer";
  const Experts gone = trimmed(cache, 0);
  EXPECT_EQ(gone.size(), 1U);
  EXPECT_NE(gone.front(), 1U) << "used twice";
  EXPECT_EQ(cache.resident_bytes(), 20U);
  EXPECT_EQ(used(cache, 0, {1}), Experts{});
  EXPECT_EQ(cache.hits(), 2U);
  EXPECT_EQ(cache.misses(), 3U);
}

TEST(ExpertCache, WithoutRoomNothingStays) {
  const std::vector<ExpertCache::Layer> layers = {{.experts = 4, .bytes = 10}};
  ExpertCache cache(layers, 5);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(used(cache, 0, {0, 3}), (Experts{0, 3}));
    EXPECT_EQ(trimmed(cache, 0), (Experts{0, 3}));
  }
  EXPECT_EQ(cache.resident_bytes(), 0U);
}

// Skewed routing that does not change favours frequency; a topic that moves on, recency.
TEST(ExpertCache, ChoosesTheDecayThatWouldHaveHitMost) {
  const std::vector<ExpertCache::Layer> layers = {{.experts = 32, .bytes = 1}};
  std::mt19937 numbers(3);  // NOLINT: reproducible
  const auto random = [&] { return static_cast<std::uint32_t>(numbers()); };
  ExpertCache skewed(layers, 8), moving(layers, 8);
  for (std::uint32_t step = 0; step < 3000; ++step) {
    std::set<std::uint32_t> rare, near;
    while (rare.size() < 4) rare.insert(random() % 3 > 0 ? random() % 8 : random() % 32);
    while (near.size() < 4) near.insert((step / 12 + random() % 6) % 32);
    skewed.use(0, Experts(rare.begin(), rare.end()));
    skewed.trim(0);
    moving.use(0, Experts(near.begin(), near.end()));
    moving.trim(0);
  }
  EXPECT_GE(skewed.decay(), 0.99);
  EXPECT_LE(moving.decay(), 0.9);
  const auto share = [](const ExpertCache& cache) {
    return static_cast<double>(cache.hits()) / static_cast<double>(cache.hits() + cache.misses());
  };
  EXPECT_GT(share(skewed), 0.6);
  EXPECT_GT(share(moving), 0.6);
}

}  // namespace
}  // namespace tt::test
