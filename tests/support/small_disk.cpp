#include "tests/support/small_disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <format>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/support/unshare_mounts.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr std::int64_t kMaxFillBytes = 256 * kMebibyte;  // a tmpfs uses memory

// Writable tmpfs mounts that are small enough to fill.
std::vector<fs::path> small_tmpfs() {
  std::vector<fs::path> found;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string field, root, point, type;
    fields >> field >> field >> field >> root >> point;
    while (fields >> field && field != "-") {
    }
    fields >> type;
    struct statvfs size{};
    if (type != "tmpfs" || root != "/" || point.starts_with("/dev/shm") ||
        access(point.c_str(), W_OK) != 0 || statvfs(point.c_str(), &size) != 0 ||
        static_cast<std::int64_t>(size.f_blocks * size.f_frsize) > kMaxFillBytes) {
      continue;
    }
    found.emplace_back(point);
  }
  return found;
}

}  // namespace

SmallDisk::SmallDisk(int mebibytes) {
  const std::string size = std::format("size={}m", mebibytes);
  if (unshare_mounts() && mount("small", folder_.path().c_str(), "tmpfs", 0, size.c_str()) == 0) {
    mounted_ = true;
    path_ = folder_.path();
    return;
  }
  for (const fs::path& tmpfs : small_tmpfs()) {
    if (fill_tmpfs(tmpfs, mebibytes)) return;
  }
  problem_ =
      "This process cannot mount, and found no tmpfs of at most 256 MiB to fill "
      "instead. For a container: docker run --tmpfs /small:size=64m,mode=1777, or --privileged";
}

bool SmallDisk::fill_tmpfs(const fs::path& tmpfs, int mebibytes) {
  lock_ = open((tmpfs / "tt-small-disk.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0 || flock(lock_, LOCK_EX) != 0) return false;
  path_ = tmpfs / "tt-small-disk";
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  fs::create_directory(path_, ignored);
  filler_ = open(path_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  struct statvfs size{};
  if (filler_ >= 0 && statvfs(path_.c_str(), &size) == 0) {
    const auto free = static_cast<std::int64_t>(size.f_bavail * size.f_frsize);
    const std::int64_t rest = free - mebibytes * kMebibyte;
    if (rest > 0 && posix_fallocate(filler_, 0, rest) == 0) {
      std::printf("small disk: %d MiB of %s\n", mebibytes, tmpfs.c_str());
      return true;
    }
  }
  close(filler_);
  close(lock_);
  filler_ = lock_ = -1;
  return false;
}

SmallDisk::~SmallDisk() {
  if (mounted_) {
    umount2(path_.c_str(), MNT_DETACH);
  } else if (lock_ >= 0) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    close(filler_);
    close(lock_);
  }
}

}  // namespace tt::test
