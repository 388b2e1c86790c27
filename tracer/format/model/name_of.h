// The name of an enum value, from a table in the order of the enum.
#pragma once

#include <array>
#include <cstddef>

namespace tt {

// A value that the enum does not have, as from a damaged file: "unknown".
template <class Enum, std::size_t N>
const char* name_of(const std::array<const char*, N>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : "unknown";
}

}  // namespace tt
