// Weight sizes as JSON, and the weight sizes of a model's files.
#pragma once

#include <vector>

#include "analysis/weights/compression.h"
#include "api/json/json.h"
#include "tracer/gguf/gguf_index.h"

namespace tt {

// All tensors of a model, in file order.
std::vector<WeightSize> weights_of(const GgufIndex& index);

// {"total": {...}, "types": [...], "layers": [...], "components": [...], "weights": [...]}
Json to_json(const CompressionReport& report);

}  // namespace tt
