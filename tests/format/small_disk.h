// A file system of a few MiB that only this process and its children see; it
// goes with them. Tests fill it, or make it read-only.
#pragma once

#include <sched.h>
#include <sys/mount.h>

#include <filesystem>
#include <format>
#include <fstream>
#include <sstream>
#include <string>

namespace tt::testing {

// Over `folder`. False: this machine does not let us mount. Once per process
// and folder.
inline bool mount_small_disk(const std::filesystem::path& folder, int mebibytes = 1) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  // Nothing of this is to reach other processes. Not through "/", which is no
  // mount point in a chroot.
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string field, point;
    fields >> field >> field >> field >> field >> point;
    mount(nullptr, point.c_str(), nullptr, MS_PRIVATE, nullptr);
  }
  return mount("small", folder.c_str(), "tmpfs", 0, std::format("size={}m", mebibytes).c_str()) ==
         0;
}

inline bool make_disk_read_only(const std::filesystem::path& folder) {
  return mount("small", folder.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
}

}  // namespace tt::testing
