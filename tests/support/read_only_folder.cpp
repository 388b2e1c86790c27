#include "tests/support/read_only_folder.h"

#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "tests/support/unshare_mounts.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

bool mount_read_only(const fs::path& folder) {
  const char* path = folder.c_str();
  if (!unshare_mounts() || mount(path, path, nullptr, MS_BIND, nullptr) != 0) return false;
  if (mount(nullptr, path, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0) return true;
  umount2(path, MNT_DETACH);
  return false;
}

}  // namespace

bool drop_permission_override() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct held[2]{};
  if (syscall(SYS_capget, &header, held) != 0) return false;
  for (const int power : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) {
    // A program that root starts gets all capabilities of the bounding set.
    if (geteuid() == 0 && prctl(PR_CAPBSET_READ, power) == 1 &&
        prctl(PR_CAPBSET_DROP, power) != 0) {
      return false;
    }
    const unsigned others = ~(1U << power);
    held[0].effective &= others;
    held[0].permitted &= others;
    held[0].inheritable &= others;
  }
  return syscall(SYS_capset, &header, held) == 0;
}

ReadOnlyFolder::ReadOnlyFolder(const fs::path& folder)
    : folder_(folder), mounted_(mount_read_only(folder)) {
  if (!mounted_) {
    before_.emplace_back(folder, fs::status(folder).permissions());
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      before_.emplace_back(entry.path(), entry.status().permissions());
    constexpr fs::perms kWrite =
        fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write;
    for (const auto& [path, perms] : before_)
      fs::permissions(path, kWrite, fs::perm_options::remove);
    if (!drop_permission_override()) {
      problem_ =
          "This process can neither mount nor drop root's capability to bypass permissions. For a "
          "container: docker run --cap-add SETPCAP, or --privileged";
      return;
    }
    std::printf("read-only folder: by permissions\n");
  }
  if (access(folder.c_str(), W_OK) == 0) problem_ = "The folder is still writable.";
}

ReadOnlyFolder::~ReadOnlyFolder() {
  if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
  std::error_code ignored;
  for (const auto& [path, perms] : before_) fs::permissions(path, perms, ignored);
}

}  // namespace tt::test
