#include "tracer/memory/experts/routed_experts.h"

#include <algorithm>
#include <utility>

namespace tt {

namespace {

WeightRange slice_of(const ExpertUse& use, std::uint32_t expert) {
  const std::uint64_t at = std::uint64_t{expert} * use.stride;
  return {.file = {.file = use.range.file.file,
                   .offset = use.range.file.offset + at,
                   .length = use.slice},
          .address = use.range.address + at};
}

// Below this share of right predictions, reading ahead costs more than it hides: a wrong read takes
// as long as a right one.
constexpr double kMinShare = 0.5;
// Of the cache; reading ahead takes no more.
constexpr std::uint64_t kMinCache = 4;

// The distinct experts in the list of a running graph. The values can change while they are read:
// then they are wrong experts, but valid ones.
std::vector<std::uint32_t> listed_experts(const ExpertUse& use) {
  std::vector<std::uint32_t> experts;
  for (std::uint32_t token = 0; token < use.tokens; ++token) {
    const auto* list = reinterpret_cast<const std::int32_t*>(  // NOLINT: an address of the graph
        use.list_address + token * use.token_stride);
    for (std::uint32_t i = 0; i < use.per_token; ++i) {
      const std::int32_t expert = __atomic_load_n(list + i, __ATOMIC_RELAXED);
      if (expert >= 0 && static_cast<std::uint32_t>(expert) < use.experts)
        experts.push_back(static_cast<std::uint32_t>(expert));
    }
  }
  std::ranges::sort(experts);
  const auto [first, last] = std::ranges::unique(experts);
  experts.erase(first, last);
  return experts;
}

}  // namespace

std::vector<RoutedExperts::Layer> RoutedExperts::layers_of(std::span<const ExpertUse> uses) {
  std::vector<Layer> layers;
  for (const ExpertUse& use : uses) {
    if (use.list_address == 0) continue;
    if (layers.empty() || layers.back().uses.front().list_address != use.list_address ||
        layers.back().uses.front().routed_by != use.routed_by)
      layers.emplace_back();
    layers.back().uses.push_back(use);
    if (!std::ranges::contains(weights_, use.range)) weights_.push_back(use.range);
  }
  // A layer is known by its first weight.
  for (Layer& layer : layers) {
    const auto found = std::ranges::find(weights_, layer.uses.front().range);
    layer.id = static_cast<std::size_t>(found - weights_.begin());
  }
  return layers;
}

void RoutedExperts::start(std::span<const Layer> layers, std::uint64_t capacity, bool predict) {
  std::vector<ExpertCache::Layer> sizes(weights_.size());
  const auto before = std::exchange(used_layers_, {});
  std::uint64_t reserve = 0;
  for (const Layer& layer : layers) {
    ExpertCache::Layer& size = sizes[layer.id];
    size.experts = layer.uses.front().experts;
    for (const ExpertUse& use : layer.uses) size.bytes += pages_around(slice_of(use, 0)).length;
    used_layers_.emplace_back(layer.id, size.experts);
    reserve = std::max(reserve, layer.uses.front().per_token * size.bytes);
  }
  may_read_ahead_ = predict && layers.size() > 1 && capacity / kMinCache >= reserve;
  if (may_read_ahead_) capacity -= reserve;
  const auto experts_of = &std::pair<std::size_t, std::uint32_t>::second;
  if (!predictor_ || !std::ranges::equal(before, used_layers_, {}, experts_of, experts_of)) {
    std::vector<std::uint32_t> experts;
    for (const auto& layer : used_layers_) experts.push_back(layer.second);
    predictor_.emplace(experts);
  }
  // Only the numbers of first weights are layers; the others share nothing of the capacity.
  cache_.emplace(sizes, layers.empty() ? 0 : capacity / layers.size() * sizes.size());
  for (const WeightRange& range : weights_) {
    pages_.set_fault_around(pages_around(range), false);
    pages_.release(pages_within(range));
  }
  use_blocks(layers);
  following_ = 0;
  next_ = 0;
  routed_ = false;
  unseen_ = 0;
  queue_.clear();
  ahead_ = {};
}

// Of large experts. Each is a mapping of its own for the kernel, of which a process may have
// 65,530.
void RoutedExperts::use_blocks(std::span<const Layer> layers) {
  constexpr std::uint64_t kLarge = 4, kMaxSlices = 8192;
  std::uint64_t slices = 0;
  for (const Layer& layer : layers)
    for (const ExpertUse& use : layer.uses) slices += use.experts;
  if (slices > kMaxSlices) return;
  for (const Layer& layer : layers) {
    for (const ExpertUse& use : layer.uses) {
      if (use.slice < kLarge * block_bytes()) continue;
      for (std::uint32_t expert = 0; expert < use.experts; ++expert)
        pages_.use_blocks(pages_within(slice_of(use, expert)));
    }
  }
}

void RoutedExperts::stop() {
  for (const WeightRange& range : weights_) pages_.set_fault_around(pages_around(range), true);
  cache_.reset();
  queue_.clear();
  ahead_ = {};
}

double RoutedExperts::uniform_share() const {
  if (!cache_ || used_layers_.empty()) return 0;
  double share = 0;
  for (const auto& [layer, experts] : used_layers_)
    share += static_cast<double>(cache_->slots(layer)) / std::max(1U, experts);
  return share / static_cast<double>(used_layers_.size());
}

bool RoutedExperts::follow(std::span<const Layer> layers, std::uint64_t step, bool running) {
  if (step != following_) {
    // The rest of the former step has passed.
    if (std::exchange(routed_, false) && next_ < layers.size()) release(layers[next_]);
    settle_ahead({});
    predictor_->begin_token();
    following_ = step;
    next_ = 0;
    queue_.clear();
  }
  if (!running) return false;
  bool changed = false;
  while (next_ < layers.size()) {
    const Layer& layer = layers[next_];
    const ExpertUse& first = layer.uses.front();
    const std::uint32_t run = ops_run_.load(std::memory_order_acquire);
    if (!routed_ && run <= first.routed_by.v + 1) break;
    if (!routed_ && run <= layer.last_op()) {
      const auto experts = listed_experts(first);
      // Still the same layer of the same step: the list was not overwritten meanwhile.
      if (ops_run_.load(std::memory_order_acquire) > layer.last_op() + 1 || step_.load() != step)
        break;
      fetch(layer, experts);
      settle_ahead(experts);
      if (first.tokens == 1) learn_and_predict(layers, experts);
      routed_ = changed = true;
    }
    if (run <= layer.last_op() + 1) break;
    if (std::exchange(routed_, false)) {
      release(layer);
    } else {
      // Those that were predicted for this layer, not for the next one.
      if (ahead_.layer == layer.id) settle_ahead({});
      unseen_ += std::min(first.experts, first.per_token * first.tokens);
    }
    ++next_;
    changed = true;
  }
  return changed;
}

std::optional<MappedPages> RoutedExperts::next_read() {
  if (queue_.empty()) return std::nullopt;
  const MappedPages pages = queue_.front();
  queue_.pop_front();
  return pages;
}

void RoutedExperts::fetch(const Layer& layer, std::span<const std::uint32_t> experts) {
  const std::span<const std::uint32_t> missing = cache_->use(layer.id, experts);
  for (const ExpertUse& use : layer.uses) {
    for (const std::uint32_t expert : missing) {
      const MappedPages pages = pages_around(slice_of(use, expert));
      if (!is_ahead(layer, expert)) {
        pages_.submit(pages);
        bytes_submitted_ += pages.length;
      }
      queue_.push_back(pages);
    }
  }
}

std::size_t RoutedExperts::place_of(const Layer& layer) const {
  const auto found =
      std::ranges::find(used_layers_, layer.id, &std::pair<std::size_t, std::uint32_t>::first);
  return static_cast<std::size_t>(found - used_layers_.begin());
}

void RoutedExperts::learn_and_predict(std::span<const Layer> layers,
                                      std::span<const std::uint32_t> experts) {
  const std::size_t place = place_of(layers[next_]);
  if (place >= used_layers_.size()) return;
  predictor_->observe(place, experts);
  if (next_ + 1 >= layers.size() || place + 1 >= used_layers_.size()) return;
  const Layer& next = layers[next_ + 1];
  if (used_layers_[place + 1].first != next.id) return;
  const auto predicted =
      predictor_->predict(place + 1, next.uses.front().per_token,
                          [&](std::uint32_t expert) { return !cache_->contains(next.id, expert); });
  // Predictions are also made, and compared, where nothing is read.
  if (!may_read_ahead_ || predictor_->recent_share() < kMinShare) return;
  ahead_.layer = next.id;
  for (const std::uint32_t expert : predicted) {
    for (const ExpertUse& use : next.uses) {
      const WeightRange slice = slice_of(use, expert);
      const MappedPages pages = pages_around(slice);
      pages_.submit(pages);
      bytes_submitted_ += pages.length;
      bytes_ahead_ += pages.length;
      ahead_.bytes += pages.length;
      ahead_.slices.push_back({.expert = expert, .pages = pages, .released = pages_within(slice)});
    }
  }
}

bool RoutedExperts::is_ahead(const Layer& layer, std::uint32_t expert) const {
  return ahead_.layer == layer.id &&
         std::ranges::contains(ahead_.slices, expert, &Ahead::Slice::expert);
}

void RoutedExperts::settle_ahead(std::span<const std::uint32_t> used) {
  for (const Ahead::Slice& slice : ahead_.slices) {
    if (std::ranges::contains(used, slice.expert)) continue;
    bytes_wasted_ += slice.pages.length;
    if (slice.released.length > 0) pages_.release(slice.released);
  }
  ahead_.slices.clear();
  ahead_.bytes = 0;
}

void RoutedExperts::release(const Layer& layer) {
  for (const std::uint32_t expert : cache_->trim(layer.id))
    for (const ExpertUse& use : layer.uses)
      if (const MappedPages pages = pages_within(slice_of(use, expert)); pages.length > 0)
        pages_.release(pages);
}

}  // namespace tt
