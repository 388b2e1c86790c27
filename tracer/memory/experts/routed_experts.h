// Reads routed experts when they are known. The router of a layer writes the list of the chosen
// experts into memory; as soon as it is complete, those that are not in memory are read, and when
// the layer has been evaluated, those that do not stay are released (expert_cache.h).
//
// While the experts of a layer are read, those of the next layer are predicted (expert_predictor.h)
// for steps of one token. Where most predictions are right, predicted experts that are not in
// memory are read before the router chooses; a wrong one costs a read and is released. At most one
// layer is read ahead, in memory that is taken from the cache.
//
// Worker thread of MemoryManager only.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tracer/memory/experts/expert_cache.h"
#include "tracer/memory/experts/expert_predictor.h"
#include "tracer/memory/pages/model_pages.h"
#include "tracer/memory/plan/memory_plan.h"
#include "tracer/memory/plan/weight_order.h"

namespace tt {

class RoutedExperts {
 public:
  // The layers of one graph, in the order of its ops: all weights of a layer use the same list.
  struct Layer {
    std::vector<ExpertUse> uses;
    std::size_t id = 0;  // the same for a layer in every graph
    std::uint32_t last_op() const { return uses.back().op.v; }
  };
  // The counters of MemoryManager, which the inference thread writes.
  RoutedExperts(ModelPages& pages, const std::atomic<std::uint32_t>& ops_run,
                const std::atomic<std::uint64_t>& step)
      : pages_(pages), ops_run_(ops_run), step_(step) {}

  // The layers of a graph; their weights are added to weights().
  std::vector<Layer> layers_of(std::span<const ExpertUse> uses);
  const std::vector<WeightRange>& weights() const { return weights_; }

  // From now on keeps at most `capacity` bytes. Nothing is in memory. `predict`: whether predicted
  // experts are read.
  void start(std::span<const Layer> layers, std::uint64_t capacity, bool predict = true);
  void stop();
  bool active() const { return cache_.has_value(); }

  // Follows the running step; also call it between steps. Returns whether something happened.
  bool follow(std::span<const Layer> layers, std::uint64_t step, bool running);
  // The next range whose read was submitted and that should be waited for.
  std::optional<MappedPages> next_read();

  std::uint64_t bytes_submitted() const { return bytes_submitted_; }  // since the begin
  std::uint64_t resident_bytes() const {
    return (cache_ ? cache_->resident_bytes() : 0) + ahead_.bytes;
  }
  std::uint64_t hits() const { return cache_ ? cache_->hits() + unseen_ : 0; }
  std::uint64_t misses() const { return cache_ ? cache_->misses() : 0; }
  // Predictions of experts that were not in memory; nullptr: none yet.
  const ExpertPredictor* predictor() const { return predictor_ ? &*predictor_ : nullptr; }
  // Read before the router had chosen, and the part of it that was not used. Since the begin.
  std::uint64_t bytes_ahead() const { return bytes_ahead_; }
  std::uint64_t bytes_wasted() const { return bytes_wasted_; }
  // Share of used experts that would be in memory if all were equally likely.
  double uniform_share() const;

 private:
  // Predicted experts of a layer that are being read.
  struct Ahead {
    std::size_t layer = 0;  // Layer::id
    struct Slice {
      std::uint32_t expert = 0;
      MappedPages pages;     // that were read
      MappedPages released;  // that contain no byte of another expert
    };
    std::vector<Slice> slices;
    std::uint64_t bytes = 0;
  };
  void use_blocks(std::span<const Layer> layers);
  std::size_t place_of(const Layer& layer) const;  // in used_layers_
  void learn_and_predict(std::span<const Layer> layers, std::span<const std::uint32_t> experts);
  bool is_ahead(const Layer& layer, std::uint32_t expert) const;
  // The router has chosen, or its choice was not seen: releases what was not used.
  void settle_ahead(std::span<const std::uint32_t> used);
  void fetch(const Layer& layer, std::span<const std::uint32_t> experts);
  void release(const Layer& layer);

  ModelPages& pages_;
  const std::atomic<std::uint32_t>& ops_run_;
  const std::atomic<std::uint64_t>& step_;
  std::vector<WeightRange> weights_;
  std::optional<ExpertCache> cache_;
  std::uint64_t following_ = 0;  // the step
  std::size_t next_ = 0;         // layer that has not been passed in this step
  bool routed_ = false;          // its list was read
  std::deque<MappedPages> queue_;
  std::uint64_t bytes_submitted_ = 0;
  // Uses in layers that passed before their list was read. A layer that waits for the disk takes
  // longer, so they were in memory.
  std::uint64_t unseen_ = 0;
  std::vector<std::pair<std::size_t, std::uint32_t>> used_layers_;  // and their experts
  std::optional<ExpertPredictor> predictor_;                        // by place in used_layers_
  bool may_read_ahead_ = false;                                     // there is memory for it
  Ahead ahead_;
  std::uint64_t bytes_ahead_ = 0, bytes_wasted_ = 0;
};

}  // namespace tt
