// Statistics of a tensor's values (level VERBOSE). Reads the tensor from any device. Call only
// when the tensor is complete and not yet overwritten.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tracer/format/model/step.h"

struct ggml_tensor;

namespace tt {

// nullopt for types that cannot be converted to float (index lists). `scratch` is reused between
// calls. The caller sets ValueStats::op.
std::optional<ValueStats> value_stats(const ggml_tensor& tensor, std::vector<std::byte>& scratch);

}  // namespace tt
