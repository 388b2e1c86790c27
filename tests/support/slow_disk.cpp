#include "tests/support/slow_disk.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstring>
#include <format>
#include <fstream>
#include <system_error>

namespace tt::test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kController = "/sys/fs/cgroup/blkio";

bool write_text(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::endl;
  return out.good();
}

// "254:0", of the whole disk.
std::string disk_of(const fs::path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return "";
  const std::string device = std::format("{}:{}", major(info.st_dev), minor(info.st_dev));
  const fs::path sys = "/sys/dev/block/" + device;
  std::error_code none;
  if (!fs::exists(sys / "partition", none)) return fs::exists(sys, none) ? device : "";
  std::ifstream parent(fs::canonical(sys, none).parent_path() / "dev");
  std::string disk;
  parent >> disk;
  return disk;
}

}  // namespace

std::unique_ptr<SlowDisk> SlowDisk::make(const fs::path& file, std::uint64_t bytes_per_second,
                                         std::string& problem) {
  const std::string disk = disk_of(file);
  if (disk.empty()) {
    problem = file.string() + " is not on a disk";
    return nullptr;
  }
  const fs::path folder = fs::path(kController) / std::format("tt-test-{}", ::getpid());
  if (!fs::exists(fs::path(kController) / "blkio.throttle.read_bps_device")) {
    problem = std::string(kController) + " has no limits of speed";
    return nullptr;
  }
  std::error_code failed;
  fs::create_directory(folder, failed);
  if (failed) {
    problem = std::format("{}: {}", folder.string(), failed.message());
    return nullptr;
  }
  std::unique_ptr<SlowDisk> slow(new SlowDisk(folder));
  if (write_text(folder / "blkio.throttle.read_bps_device",
                 std::format("{} {}", disk, bytes_per_second)) &&
      write_text(folder / "cgroup.procs", std::to_string(::getpid())))
    return slow;
  problem = folder.string() + ": the limit cannot be set";
  return nullptr;
}

SlowDisk::~SlowDisk() {
  write_text(fs::path(kController) / "cgroup.procs", std::to_string(::getpid()));
  ::rmdir(folder_.c_str());
}

}  // namespace tt::test
