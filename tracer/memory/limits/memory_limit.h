// The memory limit that applies to this process: the smallest of its cgroups (v1, or memory.max and
// memory.high of v2, up the hierarchy), RLIMIT_AS and the RAM.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tt {

struct MemoryLimit {
  std::uint64_t limit = 0;  // bytes
  std::uint64_t used = 0;   // charged to it, page cache included
  // The part of `used` that the kernel cannot take back: anonymous and shared memory, kernel.
  std::uint64_t fixed = 0;
  std::string source;  // "cgroup v1 /group", "cgroup v2 /group (memory.high)", "RLIMIT_AS", "RAM"
  std::uint64_t lock_limit = UINT64_MAX;  // RLIMIT_MEMLOCK; UINT64_MAX: none, or CAP_IPC_LOCK
};

// What is left to pages that the kernel charges at once.
std::uint64_t reserve_of(std::uint64_t limit);
// The part of the limit that a model can use for its weights, of which `resident` bytes are in
// memory: without what others need, and the reserve.
std::uint64_t free_for_weights(const MemoryLimit& limit, std::uint64_t resident);

// Finds the groups of this process once; read() reads their files again. A process that is moved
// to another group needs a new reader. One thread.
class MemoryLimitReader {
 public:
  // `root` is put in front of the paths of all files: tests give a recorded folder.
  explicit MemoryLimitReader(const std::filesystem::path& root = {});
  MemoryLimit read() const;

  struct Group {
    std::filesystem::path folder;
    std::string name;  // path in the hierarchy
    bool v2 = false;
  };
  // Of the process, then their parents.
  const std::vector<Group>& groups() const { return groups_; }

 private:
  void add_groups(const std::string& cgroup, bool v2);

  const std::filesystem::path root_;
  std::vector<Group> groups_;
};

}  // namespace tt
