// Statistics, pictures, errors and mixes of weights as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json/json.h"
#include "tracer/weights/model_comparison.h"
#include "tracer/weights/quantization_mix.h"
#include "tracer/weights/tensor_details.h"
#include "tracer/weights/tensor_picture.h"

namespace tt {

// {"name", "type", "shape", "layer", "component", "bytes"} of a tensor.
Json tensor_json(const GgufTensor& tensor);
// {"count", "zeros", "not_finite", "outliers", "min", "max", "mean", "std", "rms"}
Json to_json(const WeightStatistics& statistics);
// {"tensors": [...]}: tensor_json() and statistics, or "error" if the values cannot be decoded
Json to_json(const std::vector<TensorSummary>& summaries);
// tensor_json(), statistics, "histogram", "quantiles", "scales", "minima" (null: the type has
// none); no rows
Json to_json(const TensorDetails& details);
// {"row"} and statistics
Json to_json(const TensorDetails::Row& row);
// One value, its block as hexadecimal digits. A value that is not finite is null.
Json to_json(const TensorValue& value);
// One sub-block: {"row", "first", "values", "scale", "minimum", "super_block"} and statistics.
Json to_json(const WeightBlock& block);
// The picture of an array of this name as JSON, and as a raster of api/raster_format.md.
std::string json_of(const TensorPicture& picture, std::string_view name);
std::string columns_of(const TensorPicture& picture, std::string_view name);
// {"rmse", "relative_error", "cosine", "max_error"}
Json to_json(const ErrorSum& error);
// tensor_json(), "reference_type" (null: not in the reference), and the errors, or "error": why
// there are none; "bytes_saved", "reads", "predicted_error"
Json to_json(const TensorComparison& comparison);
// The same, with "worst_rows" and "worst_blocks"
Json json_with_worst(const TensorComparison& comparison);
// {"relative_error", "predicted_relative_error", "tensors": [...] with "error_per_byte", "layers":
// [...], "components": [...]}
Json to_json(const ModelComparison& comparison);
// {"bytes", "relative_error", "tensors": [...], "uniform": [...]}
Json to_json(const QuantizationMix& mix);

}  // namespace tt
