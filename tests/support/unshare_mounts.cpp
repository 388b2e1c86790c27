#include "tests/support/unshare_mounts.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <format>
#include <fstream>
#include <sstream>
#include <string>

namespace tt::test {

bool unshare_mounts() {
  const auto user = geteuid();
  const auto group = getegid();
  if (unshare(CLONE_NEWNS) != 0) {
    // A non-root user may mount where user namespaces are enabled. Files made there need an owner.
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << std::format("{0} {0} 1", user);
    std::ofstream("/proc/self/gid_map") << std::format("{0} {0} 1", group);
  }
  // Mounts must not propagate to other processes. Not set through "/", which is not a mount
  // point in a chroot.
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string field, point;
    fields >> field >> field >> field >> field >> point;
    mount(nullptr, point.c_str(), nullptr, MS_PRIVATE, nullptr);
  }
  return true;
}

}  // namespace tt::test
