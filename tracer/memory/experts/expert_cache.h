// Which routed experts to keep in memory. Pure logic: the caller reads and releases.
//
// Every layer has the same number of bytes, so that a layer with even routing does not take the
// room of one with a few hot experts. Of the experts that a layer has used, those with the highest
// score stay. The score is the number of uses, each weighted by decay^(steps since then): a small
// decay keeps the most recent experts, one near 1 the most frequent. Which decay is best depends
// on model and text, so caches with several decays are simulated with the experts that are really
// used, and the decay with the most hits so far decides. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tt {

class ExpertCache {
 public:
  struct Layer {
    std::uint32_t experts = 0;
    std::uint64_t bytes = 0;  // of one expert
  };
  static constexpr std::array<double, 4> kDecays = {0.5, 0.9, 0.99, 0.999};

  ExpertCache(std::span<const Layer> layers, std::uint64_t capacity);

  // The experts of a layer that a step uses, without duplicates. Returns those that are not in
  // memory; they now are. Valid until the next call.
  std::span<const std::uint32_t> use(std::size_t layer, std::span<const std::uint32_t> experts);
  // The layer has been evaluated: returns the experts that no longer stay. Valid until the next
  // call.
  std::span<const std::uint32_t> trim(std::size_t layer);

  std::uint64_t resident_bytes() const { return resident_bytes_; }
  std::uint32_t slots(std::size_t layer) const { return layers_[layer].slots; }
  bool contains(std::size_t layer, std::uint32_t expert) const;
  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }
  double decay() const { return kDecays[best_]; }

 private:
  struct Policy {
    std::vector<double> scores;  // per expert
    std::vector<bool> kept;      // simulated
  };
  struct State {
    Layer layer;
    std::uint32_t slots = 0;
    std::array<Policy, kDecays.size()> policies;
    std::vector<bool> resident;
  };
  static void keep_best(const std::vector<double>& scores, std::uint32_t slots,
                        std::vector<bool>& kept);

  std::vector<State> layers_;
  std::array<std::uint64_t, kDecays.size()> simulated_hits_{};
  std::size_t best_ = 2;
  std::vector<std::uint32_t> changed_;
  std::uint64_t resident_bytes_ = 0, hits_ = 0, misses_ = 0;
};

}  // namespace tt
