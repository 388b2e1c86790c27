// The weight sizes of a model's files.
#pragma once

#include <vector>

#include "analysis/weights/compression.h"
#include "tracer/gguf/gguf_index.h"

namespace tt {

// All tensors of a model, in file order.
std::vector<WeightSize> weights_of(const GgufIndex& index);

}  // namespace tt
