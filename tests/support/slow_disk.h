// Limits the speed at which this process reads from the disk of a file, while it exists (blkio
// controller of cgroup v1). Reads of the kernel on behalf of the process, such as readahead of page
// faults, are limited, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace tt::test {

class SlowDisk {
 public:
  // Null if this process may not; `problem` then says why.
  static std::unique_ptr<SlowDisk> make(const std::filesystem::path& file,
                                        std::uint64_t bytes_per_second, std::string& problem);
  ~SlowDisk();  // the process goes back to the parent group
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;

 private:
  explicit SlowDisk(std::filesystem::path folder) : folder_(std::move(folder)) {}
  const std::filesystem::path folder_;
};

}  // namespace tt::test
