// Identity and version of the file at a path: a value to compare.
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
  std::uint64_t device = 0, inode = 0;  // 0, 0: the file does not exist
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

FileStamp stamp_of(const std::filesystem::path& path);

// Message for the first file that changed since its stamp was taken; nullopt: no change.
std::optional<std::string> find_changed_file(std::span<const FileStamp> stamps);

}  // namespace tt
