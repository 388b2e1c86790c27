#include "analysis/experts/expert_load.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/common/split_mix.h"
#include "tracer/format/model/quantile.h"

namespace tt {

double load_entropy(std::span<const std::uint64_t> choices) {
  double all = 0, bits = 0;
  for (const std::uint64_t count : choices) all += static_cast<double>(count);
  for (const std::uint64_t count : choices) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / all;
    bits -= share * std::log2(share);
  }
  return std::max(bits, 0.0);
}

double load_gini(std::vector<std::uint64_t> choices, std::uint32_t experts) {
  // Sorted ascending, unused experts first: sum of (2 * place - n - 1) * choices / (n * all).
  std::ranges::sort(choices);
  const double n = experts;
  double sum = 0, all = 0;
  double place = n - static_cast<double>(choices.size());
  for (const std::uint64_t count : choices) {
    place += 1;
    sum += (2 * place - n - 1) * static_cast<double>(count);
    all += static_cast<double>(count);
  }
  return all > 0 && experts > 0 ? sum / (n * all) : 0;
}

void LoadBlocks::add(std::span<const std::uint32_t> experts) {
  if (blocks_.empty() || last_ == length_) {
    if (blocks_.size() == kMaxBlocks) {
      for (std::size_t i = 0; i < kMaxBlocks / 2; ++i) {
        Block merged = std::move(blocks_[2 * i]);
        for (const auto& [expert, count] : blocks_[2 * i + 1]) merged[expert] += count;
        blocks_[i] = std::move(merged);
      }
      blocks_.resize(kMaxBlocks / 2);
      length_ *= 2;
    }
    blocks_.emplace_back();
    last_ = 0;
  }
  ++last_;
  for (const std::uint32_t expert : experts) ++blocks_.back()[expert];
}

std::optional<LoadIntervals> LoadBlocks::intervals(std::uint32_t experts) const {
  // Places of the experts that occur, and the choices of each block by them.
  std::map<std::uint32_t, std::size_t> places;
  for (const Block& block : blocks_)
    for (const auto& [expert, count] : block) places.try_emplace(expert, places.size());
  if (blocks_.size() < kMinBlocks || places.empty()) return std::nullopt;
  std::vector<std::uint64_t> counts(blocks_.size() * places.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    for (const auto& [expert, count] : blocks_[b])
      counts[b * places.size() + places.at(expert)] = count;

  std::vector<double> entropies, ginis;
  std::vector<std::uint64_t> drawn(places.size());
  SplitMix random(1);
  const auto add_block = [&](std::size_t b) {
    for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] += counts[b * drawn.size() + i];
  };
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    std::ranges::fill(drawn, 0);
    for (std::size_t i = 0; i < blocks_.size(); ++i) add_block(random.next() % blocks_.size());
    entropies.push_back(load_entropy(drawn));
    ginis.push_back(load_gini(drawn, experts));
  }
  std::ranges::fill(drawn, 0);
  for (std::size_t b = 0; b < blocks_.size(); ++b) add_block(b);

  // As far as the samples are above and below the measured value, it is below and above the true
  // one. Few tokens make a load look more uneven than it is, in the samples once more.
  const auto interval = [](std::vector<double> samples, double measured, double most) {
    std::ranges::sort(samples);
    const auto at = [&](double share) {
      const double mirrored = 2 * measured - *quantile(std::span<const double>(samples), share);
      return std::clamp(mirrored, 0.0, most);
    };
    return LoadInterval{.low = at(0.975), .high = at(0.025)};
  };
  const double n = experts;
  return LoadIntervals{.entropy = interval(std::move(entropies), load_entropy(drawn), std::log2(n)),
                       .gini = interval(std::move(ginis), load_gini(drawn, experts), 1 - 1 / n)};
}

}  // namespace tt
