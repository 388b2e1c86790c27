#include "tracer/memory/experts/expert_predictor.h"

#include <algorithm>
#include <numeric>

namespace tt {

ExpertPredictor::ExpertPredictor(std::span<const std::uint32_t> experts) {
  std::uint32_t before = 0;
  for (const std::uint32_t count : experts) {
    layers_.push_back({.experts = count,
                       .last = {},
                       .followed = std::vector<float>(std::size_t{before} * count),
                       .predictions = {},
                       .given = 0});
    before = count;
  }
}

std::size_t ExpertPredictor::best() const { return score_[1].recent > score_[0].recent ? 1 : 0; }

double ExpertPredictor::recent_share() const {
  constexpr std::uint64_t kEnough = 64;
  const Score& score = score_[best()];
  return score.predicted < kEnough ? 0 : score.recent;
}

std::span<const std::uint32_t> ExpertPredictor::predict(std::size_t at, std::uint32_t count,
                                                        const Wanted& wanted) {
  Layer& layer = layers_[at];
  for (auto& predictions : layer.predictions) predictions.clear();
  auto& by_token = layer.predictions[static_cast<std::size_t>(By::PreviousToken)];
  for (const std::uint32_t expert : layer.last)
    if (by_token.size() < count && wanted(expert)) by_token.push_back(expert);
  if (at > 0 && observed_ == at - 1) {
    sums_.assign(layer.experts, 0);
    for (const std::uint32_t before : layers_[at - 1].last) {
      const auto row =
          layer.followed.begin() + static_cast<std::ptrdiff_t>(std::size_t{before} * layer.experts);
      std::transform(sums_.begin(), sums_.end(), row, sums_.begin(), std::plus());
    }
    // Those that the router will choose, of which some are not wanted.
    std::vector<std::uint32_t> order(layer.experts);
    std::iota(order.begin(), order.end(), 0);
    const auto middle = order.begin() + std::min<std::ptrdiff_t>(count, layer.experts);
    std::ranges::partial_sort(order, middle, std::greater(),
                              [&](std::uint32_t expert) { return sums_[expert]; });
    auto& by_layer = layer.predictions[static_cast<std::size_t>(By::PreviousLayer)];
    for (auto expert = order.begin(); expert != middle; ++expert)
      if (sums_[*expert] > 0 && wanted(*expert)) by_layer.push_back(*expert);
  }
  layer.given = best();
  return layer.predictions[layer.given];
}

void ExpertPredictor::observe(std::size_t at, std::span<const std::uint32_t> chosen) {
  constexpr double kWeight = 1.0 / 64;  // of one prediction in the moving average
  constexpr float kForget = 0.98F;      // older tokens count less
  Layer& layer = layers_[at];
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    Score& score = score_[kind];
    for (const std::uint32_t expert : layer.predictions[kind]) {
      const bool right = std::ranges::contains(chosen, expert);
      ++score.predicted;
      if (kind == layer.given) {
        ++predicted_;
        right_ += right;
      }
      const double weight = std::max(kWeight, 1.0 / static_cast<double>(score.predicted));
      score.recent += weight * ((right ? 1.0 : 0.0) - score.recent);
    }
    layer.predictions[kind].clear();
  }
  if (at > 0 && observed_ == at - 1) {
    for (const std::uint32_t before : layers_[at - 1].last) {
      const std::span row =
          std::span(layer.followed).subspan(std::size_t{before} * layer.experts, layer.experts);
      for (float& times : row) times *= kForget;
      for (const std::uint32_t expert : chosen) row[expert] += 1;
    }
  }
  layer.last.assign(chosen.begin(), chosen.end());
  observed_ = at;
}

void ExpertPredictor::begin_token() { observed_ = SIZE_MAX; }

}  // namespace tt
