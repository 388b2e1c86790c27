// A file system of a few MiB that a test may fill completely.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/temp_folder.h"

namespace tt::test {

// A tmpfs that is visible only to this process and its children (unshare_mounts.h). Where mounting
// is not possible: a folder in a small existing tmpfs of the container (Docker's /dev has 64
// MiB), which is filled until `mebibytes` are left; other such tests wait until this object is
// destroyed. Not /dev/shm, which the browsers of other tests use. In both cases writes fail
// with ENOSPC and statvfs() returns the free space. The content is removed with the object or,
// after a crash, by the next one.
class SmallDisk {
 public:
  explicit SmallDisk(int mebibytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // Why there is no disk, and how to get one; empty: there is one.
  const std::string& problem() const { return problem_; }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  bool fill_tmpfs(const std::filesystem::path& tmpfs, int mebibytes);

  TempFolder folder_;
  std::filesystem::path path_;
  std::string problem_;
  bool mounted_ = false;
  int lock_ = -1;
  int filler_ = -1;  // an unnamed file: it is removed when the process ends, however that ends
};

}  // namespace tt::test
