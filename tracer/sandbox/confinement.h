// Takes from this process what a job does not need: files (Landlock), the network, other programs
// and processes (seccomp). It cannot be undone, and holds for new threads and children.
//
// Both are rules of the Linux kernel: Landlock since 5.13, and only where it is enabled. What the
// kernel lacks is left out; docs/limits.md says what is then possible.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tt {

struct FileAccess {
  // Files, or folders with everything below them. Those that do not exist are ignored.
  std::vector<std::filesystem::path> read;
  std::vector<std::filesystem::path> read_and_write;
};

// No socket can be made, no program started, no other process signalled or traced. No file can be
// opened, also where the kernel has no Landlock. Open files and memory stay usable.
void confine_to_computing();

// As above, but the files of `access` can be opened. Files are not created, removed or changed in
// name, owner, mode or times.
void confine_to_files(const FileAccess& access);

// What the kernel lacks, as a sentence for the log; empty: nothing.
std::string missing_confinement();

}  // namespace tt
