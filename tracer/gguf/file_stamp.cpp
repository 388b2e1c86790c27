#include "tracer/gguf/file_stamp.h"

#include <sys/stat.h>

#include <format>

namespace tt {

FileStamp stamp_of(const std::filesystem::path& path) {
  FileStamp stamp{.path = path};
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return stamp;
  stamp.size = static_cast<std::uint64_t>(facts.st_size);
  stamp.mtime_ns = std::int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
  stamp.device = facts.st_dev;
  stamp.inode = facts.st_ino;
  return stamp;
}

std::optional<std::string> find_changed_file(std::span<const FileStamp> stamps) {
  for (const FileStamp& known : stamps) {
    const FileStamp now = stamp_of(known.path);
    if (now == known) continue;
    return std::format("The model's file {} {} since it was loaded. Load it again.",
                       known.path.string(), now.inode == 0 ? "was removed" : "has changed");
  }
  return std::nullopt;
}

}  // namespace tt
