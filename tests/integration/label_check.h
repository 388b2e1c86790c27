// Checks the component of every op of a graph against a table of patterns of weight names, op
// types and output names that is independent of the rules under test.
#pragma once

#include "tracer/format/model/graph_template.h"

namespace tt::test {

// `has_experts`: whether the model is a mixture of experts. Returns the number of ops that a
// pattern describes.
int expect_labels(const GraphTemplate& graph, bool has_experts);

}  // namespace tt::test
