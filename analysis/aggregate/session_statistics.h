// Access statistics of a session: totals, and totals by phase, layer, op kind, component,
// memory source and weight. Used by `tt parse --stats` and by statistics.json of a run
// folder. Layer, component and source are those of the tensor that the op names; see
// analysis/aggregate/breakdown.h for those of the op. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/layer_set.h"
#include "analysis/common/spread.h"
#include "analysis/index/session_index.h"

namespace tt {

struct AccessSums {
  std::uint64_t accesses = 0;
  Bytes read{}, written{};
  Bytes touched() const { return read + written; }
  AccessSums& operator+=(const AccessSums& other);
  friend bool operator==(const AccessSums&, const AccessSums&) = default;
};

struct StatisticsQuery {
  Range<std::uint64_t> steps{0, UINT64_MAX};
  LayerSet layers = LayerSet::all();  // only tensors of these layers
};

struct SessionStatistics {
  // Of all steps in the range, regardless of `layers`; without damaged steps.
  std::uint64_t steps = 0, tokens = 0;
  Ns time{};
  std::map<Phase, Spread> step_times;  // durations of normal steps
  std::uint32_t damaged_steps = 0;
  // Executed ops; with a layer filter, only ops that name a tensor of the layer.
  std::uint64_t ops = 0;
  // Distinct tensors with touched bytes (views count as their owner), and the total size of
  // the weights among them.
  std::map<TensorKind, std::uint64_t> tensors;
  Bytes weights_size{};

  AccessSums all;
  std::map<Phase, AccessSums> phases;
  std::map<LayerId, AccessSums> layers;  // kNoLayer: outside of layers
  std::map<std::string, AccessSums> op_kinds;
  std::map<Component, AccessSums> components;
  std::map<Source, AccessSums> sources;
  std::map<std::string, AccessSums> weights;  // by name
  friend bool operator==(const SessionStatistics&, const SessionStatistics&) = default;
};

SessionStatistics session_statistics(const SessionIndex& index, const StatisticsQuery& query = {});

}  // namespace tt
