// Graphs in Graphviz DOT format, for example for `dot -Tsvg`.
//
// One box per tensor; the boxes of a layer form a cluster. The colour (as in the web UI) and
// shape show the category relative to the selected layers:
//
//   layer blue, box              infrastructure green, hexagon
//   input orange, house          output of the layers purple, ellipse
//   embedding yellow, slanted    the model's output pink, octagon
//
// Edges between layers are dashed. Invalid UTF-8 and unprintable characters in tensor names
// are replaced.
#pragma once

#include <string>

#include "analysis/graph/graph_part.h"

namespace tt {

std::string to_dot(const GraphPart& part);
// collapsed(): one box per layer, component and category.
std::string collapsed_dot(const GraphPart& part);

}  // namespace tt
