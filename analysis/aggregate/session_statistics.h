// A session's accesses counted: in all, by phase, layer, kind of op, component and memory
// source, and per weight. What `tt parse --stats` prints and a run folder's statistics.json
// says. Layer, component and source are those of the tensor as the op names it; those of
// the op are analysis/aggregate/breakdown.h's. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "analysis/aggregate/trace_axis.h"
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
  Stretch<std::uint64_t> steps{0, UINT64_MAX};
  std::optional<LayerId> layer{};  // accesses to tensors of this layer; kNoLayer: of none
};

struct SessionStatistics {
  // Of the steps asked for, whatever they touched; damaged ones are left out.
  std::uint64_t steps = 0, tokens = 0;
  Ns time{};
  std::uint32_t damaged_steps = 0;
  // Ops that ran; with a layer asked for, those that name a tensor of it.
  std::uint64_t ops = 0;
  // Tensors that own bytes which were touched, each once; how large its weights are.
  std::map<TensorKind, std::uint64_t> tensors;
  Bytes weights_size{};

  AccessSums all;
  std::map<Phase, AccessSums> phases;
  std::map<LayerId, AccessSums> layers;  // kNoLayer: of none
  std::map<std::string, AccessSums> op_kinds;
  std::map<Component, AccessSums> components;
  std::map<Source, AccessSums> sources;
  std::map<std::string, AccessSums> weights;  // by name
  friend bool operator==(const SessionStatistics&, const SessionStatistics&) = default;
};

SessionStatistics session_statistics(const SessionIndex& index, const StatisticsQuery& query = {});

}  // namespace tt
