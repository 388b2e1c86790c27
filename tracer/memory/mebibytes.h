// A size for a message: "380 MiB".
#pragma once

#include <cstdint>
#include <format>
#include <string>

namespace tt {

inline std::string mebibytes(std::uint64_t bytes) {
  return std::format("{:.0f} MiB", static_cast<double>(bytes) / (1U << 20));
}

}  // namespace tt
