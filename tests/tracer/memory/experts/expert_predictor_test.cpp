// Predictions of routed experts on sequences whose rule is known.
#include "tracer/memory/experts/expert_predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tt::test {
namespace {

constexpr std::uint32_t kAll = 32;  // experts of each layer
constexpr std::size_t kLayersOfModel = 4;
using Experts = std::vector<std::uint32_t>;

Experts any_two(std::mt19937& random) {
  const auto any = [&] { return static_cast<std::uint32_t>(random() % kAll); };
  Experts two = {any(), any()};
  if (two[0] == two[1]) two[1] = (two[1] + 1) % kAll;
  std::ranges::sort(two);
  return two;
}

// Evaluates `tokens` tokens; `route` gives the experts of a layer from those of the layer before.
// Returns the share of the last half of the given predictions that was right.
template <class Route>
double share_of(
    ExpertPredictor& predictor, int tokens, Route route,
    const ExpertPredictor::Wanted& wanted = [](std::uint32_t) { return true; }) {
  std::uint64_t predicted = 0, right = 0;
  for (int token = 0; token < tokens; ++token) {
    predictor.begin_token();
    Experts before;
    for (std::size_t layer = 0; layer < kLayersOfModel; ++layer) {
      Experts given;
      if (layer > 0) {
        const auto found = predictor.predict(layer, 2, wanted);
        given.assign(found.begin(), found.end());
      }
      EXPECT_LE(given.size(), 2U);
      const Experts chosen = route(token, layer, before);
      for (const std::uint32_t expert : given) {
        EXPECT_TRUE(wanted(expert));
        predicted += token >= tokens / 2;
        right += token >= tokens / 2 && std::ranges::contains(chosen, expert);
      }
      predictor.observe(layer, chosen);
      before = chosen;
    }
  }
  return predicted == 0 ? 0 : static_cast<double>(right) / static_cast<double>(predicted);
}

TEST(ExpertPredictor, LearnsWhichExpertsFollowThoseOfTheLayerBefore) {
  ExpertPredictor predictor(std::vector<std::uint32_t>(kLayersOfModel, kAll));
  std::mt19937 random(3);  // NOLINT: a fixed seed
  const double share = share_of(predictor, 600, [&](int, std::size_t layer, const Experts& before) {
    if (layer == 0) return any_two(random);
    return Experts{(before[0] * 7 + 3) % kAll, (before[1] * 7 + 3) % kAll};
  });
  EXPECT_GT(share, 0.95);
  EXPECT_EQ(predictor.by(), ExpertPredictor::By::PreviousLayer);
  EXPECT_GT(predictor.recent_share(), 0.95);
}

TEST(ExpertPredictor, ExpertsOfThePreviousTokenArePredicted) {
  ExpertPredictor predictor(std::vector<std::uint32_t>(kLayersOfModel, kAll));
  std::mt19937 random(4);  // NOLINT: a fixed seed
  // Each layer keeps its experts for ten tokens, independently of the other layers.
  std::vector<Experts> kept(kLayersOfModel);
  const double share = share_of(predictor, 400, [&](int token, std::size_t layer, const Experts&) {
    if (token % 10 == 0) kept[layer] = any_two(random);
    return kept[layer];
  });
  EXPECT_GT(share, 0.85);
  EXPECT_LT(share, 0.95) << "every tenth is new";
}

TEST(ExpertPredictor, UniformRoutingCannotBePredicted) {
  ExpertPredictor predictor(std::vector<std::uint32_t>(kLayersOfModel, kAll));
  std::mt19937 random(5);  // NOLINT: a fixed seed
  share_of(predictor, 600, [&](int, std::size_t, const Experts&) { return any_two(random); });
  EXPECT_LT(predictor.recent_share(), 0.3);
  EXPECT_GT(predictor.predicted(), 1000U);
  EXPECT_NEAR(static_cast<double>(predictor.right()) / static_cast<double>(predictor.predicted()),
              2.0 / kAll, 0.03);
}

TEST(ExpertPredictor, GivesOnlyWhatIsWanted) {
  ExpertPredictor predictor(std::vector<std::uint32_t>(kLayersOfModel, kAll));
  // Odd experts are in memory, for example.
  const auto wanted = [](std::uint32_t expert) { return expert % 2 == 0; };
  const double share = share_of(
      predictor, 100, [](int, std::size_t, const Experts&) { return Experts{4, 5}; }, wanted);
  EXPECT_EQ(share, 1);
  EXPECT_EQ(predictor.predicted(), predictor.right() + 0U);
}

TEST(ExpertPredictor, SkippedLayersAreNoPredecessors) {
  ExpertPredictor predictor(std::vector<std::uint32_t>(3, 8U));
  const auto all = [](std::uint32_t) { return true; };
  for (int token = 0; token < 200; ++token) {
    predictor.begin_token();
    predictor.observe(0, Experts{1});
    // Layer 1 was not seen: what layer 2 chooses does not follow it.
    EXPECT_TRUE(token > 0 || predictor.predict(2, 2, all).empty());
    predictor.observe(2, Experts{static_cast<std::uint32_t>(token % 8)});
  }
  predictor.begin_token();
  EXPECT_TRUE(predictor.predict(1, 2, all).empty()) << "never observed";
}

}  // namespace
}  // namespace tt::test
