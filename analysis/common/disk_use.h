// What was read from disks, relative to what was used (docs/conditions.md).
#pragma once

#include <cstdint>
#include <optional>

namespace tt {

struct DiskUse {
  std::uint64_t read = 0;    // bytes
  std::uint64_t faults = 0;  // major page faults
  // Bytes of the mapped model files that were used, each counted once.
  std::uint64_t mapped = 0;
  // How often each of these bytes was read from the disk; nullopt: no mapped weights.
  std::optional<double> reread_factor() const {
    if (mapped == 0) return std::nullopt;
    return static_cast<double>(read) / static_cast<double>(mapped);
  }
  std::optional<std::uint64_t> bytes_per_fault() const {  // nullopt: no faults
    if (faults == 0) return std::nullopt;
    return read / faults;
  }
  friend bool operator==(const DiskUse&, const DiskUse&) = default;
};

}  // namespace tt
