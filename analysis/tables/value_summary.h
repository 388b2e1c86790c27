// What captured values are like, in a few numbers (docs/values.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/step.h"

namespace tt {

// Of the finite values; if there are none, all but the counts are 0.
struct ValueSummary {
  double min = 0, max = 0, mean = 0, std = 0;
  double norm = 0;  // square root of the sum of the squares
  std::uint64_t finite = 0, nan = 0, inf = 0;
};
ValueSummary summary_of(std::span<const float> values);
// The same, without the columns that the largest values of rows are listed with.
ValueSummary summary_of(const OutputValues& values);

// What captured values are called: as the output, "l_out-3"; "attention-3" for the attention
// weights of layer 3, with and without flash attention; "lens-3" for what the model would say after
// layer 3, "lens" for what it says. "ffn_up-3.src1" is source 1 of the op whose output is ffn_up-3,
// "l_out-3.top" the largest values of each row of l_out-3.
std::string value_name(const GraphTemplate& graph, const OutputValues& values);

}  // namespace tt
