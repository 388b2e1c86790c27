// Reads the importances that llama-imatrix writes (GGUF format): how large the inputs were that
// each column of a weight was multiplied with.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tracer/weights/weighing.h"

namespace tt {

// They are read into memory. Those of 60 layers of 384 experts with 7168 inputs take 1.4 GiB.
inline constexpr std::uint64_t kMaxImportanceBytes = 2ULL << 30;

// By name of the tensor. The importance of a column is the mean of the squares of its inputs.
// `tensor`: only its importances are read, if the file has them; empty: of all tensors. Calls
// keep_going between pieces. Error: what is wrong with the file, or "cancelled" when keep_going
// returned false.
std::expected<Importances, std::string> read_importance(const GgufIndex& index,
                                                        std::string_view tensor,
                                                        const std::function<bool()>& keep_going);
// Of all tensors.
std::expected<Importances, std::string> read_importance(const std::filesystem::path& path,
                                                        const std::function<bool()>& keep_going);

// How many bytes of the file the call above reads.
std::uint64_t importance_bytes(const GgufIndex& index, std::string_view tensor);

}  // namespace tt
