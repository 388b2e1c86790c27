// A file system of a few MiB that a test may fill to the last byte.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/temp_folder.h"

namespace tt::test {

// A tmpfs that only this process and its children see (own_mounts.h). Where nothing can be
// mounted: a folder in a small tmpfs that the container has anyway (Docker's /dev has 64 MiB),
// which is filled up but for so many MiB; other such tests then wait until this object goes.
// Not /dev/shm, where browsers of other tests work.
// Either way the kernel says ENOSPC and statvfs() how much is left. What is in it goes with the
// object, or else with the next one.
class SmallDisk {
 public:
  explicit SmallDisk(int mebibytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // Why there is none, and what would help; empty: there is one.
  const std::string& problem() const { return problem_; }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  bool take_rest_of(const std::filesystem::path& tmpfs, int mebibytes);

  TempFolder folder_;
  std::filesystem::path path_;
  std::string problem_;
  bool mounted_ = false;
  int lock_ = -1;
  int filler_ = -1;  // a file without a name: it goes with the process, however that ends
};

}  // namespace tt::test
