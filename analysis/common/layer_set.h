// A selection of layers: ranges of layer numbers, everything outside of layers, or all.
// Value type; pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/format/model/ids.h"

namespace tt {

struct LayerSet {
  struct Range {
    std::int32_t first = 0, last = 0;  // both inclusive
    friend constexpr bool operator==(Range, Range) = default;
  };
  std::vector<Range> ranges{};
  bool outside = false;  // includes what belongs to no layer

  static LayerSet all();
  static LayerSet one(LayerId layer);
  bool has(LayerId layer) const;  // kNoLayer: returns `outside`
  friend bool operator==(const LayerSet&, const LayerSet&) = default;
};

// Parses "all", or a comma-separated list of layers, layer ranges and "outside" (or
// "none"): "0,3-5", "outside". The error message describes the syntax.
std::expected<LayerSet, std::string> parse_layers(std::string_view text);
// The same syntax: parse_layers(to_text(set)) is the same set.
std::string to_text(const LayerSet& set);
// Parses one layer number, or "outside" (or "none"), which gives kNoLayer.
std::optional<LayerId> parse_layer(std::string_view text);

}  // namespace tt
