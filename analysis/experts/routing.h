// What the routers of a model with experts chose in one step, as rows.
#pragma once

#include <cstdint>
#include <vector>

#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/step.h"

namespace tt {

struct RoutingRow {
  LayerId layer;
  std::uint32_t token = 0;  // index in the session; kNone: the graph does not say which
  std::uint32_t expert = 0;
  std::uint32_t rank = 0;    // 0: the router's first choice
  float score = 0;           // the weight that the expert's output gets; NaN: not recorded
  std::uint32_t router = 0;  // which of its layer's, in the order of their ops; few layers have two
  friend bool operator==(const RoutingRow&, const RoutingRow&) = default;
};

// In the order of the layers, then by token and rank. A layer that computes only
// some of the step's tokens has rows for these. Empty when the step's slots were
// not recorded, or when the graph routes nothing.
std::vector<RoutingRow> routing_rows(const GraphTemplate& graph, const Step& step);

}  // namespace tt
