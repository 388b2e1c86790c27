// How often a session read the rows of a model's tensors.
#pragma once

#include <expected>
#include <map>
#include <string>

#include "analysis/weights/weight_uses.h"
#include "tracer/weights/weighing.h"

namespace tt {

// `read`: of a session of the model or of another quantization of it. Error: the session reads no
// tensor of the model; a sentence.
std::expected<Uses, std::string> row_uses(const std::map<std::string, WeightReads>& read,
                                          const GgufIndex& index);

}  // namespace tt
