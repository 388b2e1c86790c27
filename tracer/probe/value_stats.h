// What a tensor holds in numbers (level VERBOSE). Reads it from whatever device
// it lives on; call only when it is complete and not yet overwritten.
#pragma once

#include <optional>
#include <vector>

#include "tracer/format/model/step.h"

struct ggml_tensor;

namespace tt {

// None for types that are not numbers of a float kind (index lists). `scratch`
// is reused between calls. ValueStats::op is left for the caller.
std::optional<ValueStats> value_stats(const ggml_tensor& tensor, std::vector<float>& scratch);

}  // namespace tt
