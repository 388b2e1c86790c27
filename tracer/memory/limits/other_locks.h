// What other tt-server and tt processes of this machine have locked in memory. They know nothing of
// each other: each has a budget of its own, so their sum can be more than the machine has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tt {

struct OtherLocks {
  std::uint32_t processes = 0;
  std::uint64_t bytes = 0;  // sum of their VmLck
  friend bool operator==(const OtherLocks&, const OtherLocks&) = default;
};

// Of all processes except this one whose names are tt-server or tt, as far as this user may see
// them. Reads /proc below `root`: about 10 us per process of the machine. Any thread.
OtherLocks other_locks(const std::filesystem::path& root = "/");

// A sentence, or empty if nothing is locked elsewhere. `own`: locked by this process; `limit`: of
// the machine or the group.
std::string other_locks_text(const OtherLocks& others, std::uint64_t own, std::uint64_t limit);

}  // namespace tt
