// The values of a tensor as text.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace tt::cli {

// As llama-eval-callback prints them: of each dimension the first and the last three, and the sum
// of all. `ne`: innermost first; `values`: in this order, as many as it says.
std::string array_text(const std::array<std::uint64_t, 4>& ne, std::span<const float> values);

}  // namespace tt::cli
