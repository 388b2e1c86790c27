// Reads the importances that llama-imatrix writes (GGUF format): how large the inputs were that
// each column of a weight was multiplied with.
#pragma once

#include <expected>
#include <filesystem>
#include <map>
#include <string>

#include "tracer/weights/quantization_error.h"

namespace tt {

// By name of the tensor. The importance of a column is the mean of the squares of its inputs.
// Error: what is wrong with the file.
std::expected<std::map<std::string, ColumnImportance>, std::string> read_importance(
    const std::filesystem::path& path);

}  // namespace tt
