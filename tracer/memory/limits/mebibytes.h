// A size for a message: "380 MiB", "2.4 MiB".
#pragma once

#include <cstdint>
#include <format>
#include <string>

namespace tt {

inline std::string mebibytes(std::uint64_t bytes) {
  constexpr std::uint64_t kMebi = 1U << 20;
  const double size = static_cast<double>(bytes) / static_cast<double>(kMebi);
  return bytes < 10 * kMebi && bytes % kMebi != 0 ? std::format("{:.1f} MiB", size)
                                                  : std::format("{:.0f} MiB", size);
}

}  // namespace tt
