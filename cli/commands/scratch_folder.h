// A new folder for recordings, by default in the folder for temporary files; removed at the end
// with its files.
#pragma once

#include <stdlib.h>  // mkdtemp

#include <filesystem>
#include <format>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace tt::cli {

class ScratchFolder {
 public:
  // `name`: begin of the folder's name.
  explicit ScratchFolder(std::string_view name,
                         std::filesystem::path parent = std::filesystem::temp_directory_path())
      : parent_(std::move(parent)) {
    std::string path = (parent_ / std::format("{}-XXXXXX", name)).string();
    if (::mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }  // empty: it cannot be created
  // Why the path is empty.
  std::string error() const {
    return std::format("cannot create a folder in {}", parent_.string());
  }

 private:
  std::filesystem::path parent_;
  std::filesystem::path path_;
};

}  // namespace tt::cli
