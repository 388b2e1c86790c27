// Reads the importances that llama-imatrix writes (GGUF format): how large the inputs were that
// each column of a weight was multiplied with.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <string>

#include "tracer/weights/quantization_error.h"

namespace tt {

// They are read into memory. Those of 60 layers of 384 experts with 7168 inputs take 1.4 GiB.
inline constexpr std::uint64_t kMaxImportanceBytes = 2ULL << 30;

// By name of the tensor. The importance of a column is the mean of the squares of its inputs.
// Error: what is wrong with the file.
std::expected<std::map<std::string, ColumnImportance>, std::string> read_importance(
    const std::filesystem::path& path);

}  // namespace tt
