// Which layers a question is about: some by number, what belongs to none, or all.
// A value; pure functions, any thread.
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
    std::int32_t first = 0, last = 0;  // both included
    friend constexpr bool operator==(Range, Range) = default;
  };
  std::vector<Range> ranges{};
  bool outside = false;  // what belongs to no layer

  static LayerSet all();
  static LayerSet one(LayerId layer);
  bool has(LayerId layer) const;  // kNoLayer: whether `outside` is in
  friend bool operator==(const LayerSet&, const LayerSet&) = default;
};

// "all", or a list of layers, ranges of layers and "outside" (or "none"): "0,3-5",
// "outside". The error says what can be written.
std::expected<LayerSet, std::string> parse_layers(std::string_view text);
// One of them: a number, or "outside" (or "none"), which is kNoLayer.
std::optional<LayerId> parse_layer(std::string_view text);

}  // namespace tt
