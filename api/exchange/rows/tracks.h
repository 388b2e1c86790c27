// Timeline tracks, numbered in order of first use. Private to the timeline exporters.
#pragma once

#include <array>
#include <cstdint>
#include <format>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "tracer/format/model/graph_template.h"

namespace tt::exchange {

// In the order in which viewers show them. Steps, tokens and faults are one track each.
enum class TrackGroup : std::uint8_t {
  Steps,
  Tokens,
  Faults,
  Layers,
  Components,
  OpKinds,
  Experts,
  Sources
};
inline constexpr std::array<const char*, 8> kTrackGroups = {
    "steps",      "tokens",   "page faults", "layers",
    "components", "op kinds", "experts",     "memory sources"};
inline constexpr bool is_one_track(TrackGroup group) { return group < TrackGroup::Layers; }

struct Track {
  TrackGroup group{};
  std::uint32_t number = 0;  // track number, from 1, in order of first use
  bool is_new = false;       // first use: write its descriptor
};

class Tracks {
 public:
  Track of(TrackGroup group, const std::string& name) {
    const auto next = static_cast<std::uint32_t>(known_.size() + 1);
    const auto [at, is_new] = known_.try_emplace({group, name}, next);
    return {.group = group, .number = at->second, .is_new = is_new};
  }

 private:
  std::map<std::pair<TrackGroup, std::string>, std::uint32_t> known_;
};

inline std::string layer_track(LayerId layer) {
  return layer == kNoLayer ? std::string("outside layers") : std::format("layer {}", layer.v);
}

}  // namespace tt::exchange
