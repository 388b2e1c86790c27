// The router choices of one step of a mixture-of-experts model, as rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/step.h"

namespace tt {

struct RoutingRow {
  LayerId layer;
  std::uint32_t token = 0;  // index in the session; kNone: unknown
  std::uint32_t expert = 0;
  std::uint32_t rank = 0;    // 0: the router's first choice
  float score = 0;           // weight of the expert's output; NaN: not recorded
  std::uint32_t router = 0;  // index within the layer, in op order; few layers have two
  friend bool operator==(const RoutingRow&, const RoutingRow&) = default;
};

// Sorted by layer, then token and rank. A layer that computes only some of the step's tokens
// has rows only for these. Empty if the step's slots were not recorded or the graph has no
// router.
std::vector<RoutingRow> routing_rows(const GraphTemplate& graph, const Step& step);

// The tokens of the step that the `count` entries of a slot belong to, by their index in the step:
// all tokens, or those that are computed up to the output. kNone: unknown, because the number of
// entries or an index is wrong, as in a damaged file.
std::vector<std::uint32_t> slot_tokens(const GraphTemplate& graph, const Step& step,
                                       std::size_t count);

}  // namespace tt
