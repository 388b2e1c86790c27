// Which file lies at a path and whether it is as it was: a value to compare.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace tt {

struct FileStamp {
  std::filesystem::path path;
  std::uint64_t size = 0;  // bytes
  std::int64_t mtime_ns = 0;
  std::uint64_t device = 0, inode = 0;  // 0, 0: there is no file
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

FileStamp stamp_of(const std::filesystem::path& path);

// What changed since the stamps were taken, and what to do; none when nothing did.
std::optional<std::string> changed_file(std::span<const FileStamp> stamps);

}  // namespace tt
