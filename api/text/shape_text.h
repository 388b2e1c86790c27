// The shape of a tensor as text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <format>
#include <string>

namespace tt {

// "256x256": dimensions, innermost first, without trailing ones. At least one dimension.
inline std::string shape_text(const std::array<std::int64_t, 4>& shape) {
  std::size_t dimensions = shape.size();
  while (dimensions > 1 && shape[dimensions - 1] == 1) --dimensions;
  std::string text;
  for (std::size_t i = 0; i < dimensions; ++i)
    text += std::format("{}{}", i == 0 ? "" : "x", shape[i]);
  return text;
}

}  // namespace tt
