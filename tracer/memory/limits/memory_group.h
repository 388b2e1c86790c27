// A memory cgroup (v1 or v2) below that of this process: for trying out a memory limit.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace tt {

class MemoryGroup {
 public:
  // Null if this process may not make one; `problem` then says why.
  static std::unique_ptr<MemoryGroup> make(std::uint64_t limit, std::string& problem);
  ~MemoryGroup();  // its processes go back to the parent
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  // Charges what the process allocates and reads from now on to the group.
  bool add(pid_t process) const;  // 0: the calling process
  bool set_limit(std::uint64_t bytes) const;
  std::uint64_t used() const;
  const std::filesystem::path& folder() const { return folder_; }
  bool v2() const { return v2_; }

 private:
  MemoryGroup(std::filesystem::path folder, bool v2) : folder_(std::move(folder)), v2_(v2) {}
  const std::filesystem::path folder_;
  const bool v2_;
};

}  // namespace tt
