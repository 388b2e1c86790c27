// Graphs in DOT, the language of Graphviz: `dot -Tsvg` draws them.
//
// A box per tensor, and around those of one layer a cluster. What a box is to the
// chosen layers is said by its colour, as on the page, and by its shape:
//
//   layer blue, box              infrastructure green, hexagon
//   input orange, house          output of the layers purple, ellipse
//   embedding yellow, slanted    the model's output pink, octagon
//
// Edges between layers are dashed. A tensor's name may be any bytes; what is no
// UTF-8 or no printable character is replaced.
#pragma once

#include <string>

#include "analysis/graph/graph_part.h"

namespace tt {

std::string to_dot(const GraphPart& part);
// collapsed(): a box per layer, component and category.
std::string collapsed_dot(const GraphPart& part);

}  // namespace tt
