// Statistics, errors and mixes of weights as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/json/json.h"
#include "tracer/weights/quantization_error.h"
#include "tracer/weights/quantization_mix.h"
#include "tracer/weights/weight_statistics.h"

namespace tt {

// {"name", "type", "shape", "layer", "component", "bytes"} of a tensor.
Json tensor_json(const GgufTensor& tensor);
// {"count", "zeros", "not_finite", "outliers", "min", "max", "mean", "std", "rms"}
Json to_json(const WeightStatistics& statistics);
// {"rmse", "relative_error", "cosine", "max_error"}
Json to_json(const ErrorSum& error);
// {"bytes", "relative_error", "tensors": [...], "uniform": [...]}
Json to_json(const QuantizationMix& mix);

}  // namespace tt
