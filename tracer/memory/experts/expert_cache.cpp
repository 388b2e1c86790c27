#include "tracer/memory/experts/expert_cache.h"

#include <algorithm>

namespace tt {

ExpertCache::ExpertCache(std::span<const Layer> layers, std::uint64_t capacity) {
  const std::uint64_t share = layers.empty() ? 0 : capacity / layers.size();
  for (const Layer& layer : layers) {
    State state{.layer = layer,
                .slots = layer.bytes == 0 ? 0
                                          : static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                                share / layer.bytes, layer.experts)),
                .policies = {},
                .resident = std::vector<bool>(layer.experts)};
    for (Policy& policy : state.policies)
      policy = {.scores = std::vector<double>(layer.experts),
                .kept = std::vector<bool>(layer.experts)};
    layers_.push_back(std::move(state));
  }
}

bool ExpertCache::contains(std::size_t layer, std::uint32_t expert) const {
  return layers_[layer].resident[expert];
}

std::span<const std::uint32_t> ExpertCache::use(std::size_t layer,
                                                std::span<const std::uint32_t> experts) {
  State& state = layers_[layer];
  changed_.clear();
  for (const std::uint32_t expert : experts) {
    if (state.resident[expert]) {
      ++hits_;
      continue;
    }
    ++misses_;
    state.resident[expert] = true;
    resident_bytes_ += state.layer.bytes;
    changed_.push_back(expert);
  }
  for (std::size_t i = 0; i < kDecays.size(); ++i) {
    Policy& policy = state.policies[i];
    for (double& score : policy.scores) score *= kDecays[i];
    for (const std::uint32_t expert : experts) {
      simulated_hits_[i] += policy.kept[expert];
      policy.scores[expert] += 1;
      policy.kept[expert] = true;
    }
    keep_best(policy.scores, state.slots, policy.kept);
  }
  best_ =
      static_cast<std::size_t>(std::ranges::max_element(simulated_hits_) - simulated_hits_.begin());
  return changed_;
}

std::span<const std::uint32_t> ExpertCache::trim(std::size_t layer) {
  State& state = layers_[layer];
  const std::vector<bool> before = state.resident;
  keep_best(state.policies[best_].scores, state.slots, state.resident);
  changed_.clear();
  for (std::uint32_t expert = 0; expert < state.layer.experts; ++expert)
    if (before[expert] && !state.resident[expert]) changed_.push_back(expert);
  resident_bytes_ -= changed_.size() * state.layer.bytes;
  return changed_;
}

void ExpertCache::keep_best(const std::vector<double>& scores, std::uint32_t slots,
                            std::vector<bool>& kept) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t expert = 0; expert < kept.size(); ++expert)
    if (kept[expert]) order.push_back(expert);
  if (order.size() <= slots) return;
  std::ranges::stable_sort(order,
                           [&](std::uint32_t a, std::uint32_t b) { return scores[a] > scores[b]; });
  for (std::size_t i = slots; i < order.size(); ++i) kept[order[i]] = false;
}

}  // namespace tt
