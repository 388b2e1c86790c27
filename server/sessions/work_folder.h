// A temporary folder in the data folder, for uploads and snapshots. It is removed with its
// content by the destructor; folders of a killed server are removed at the next start. Movable
// resource.
#pragma once

#include <expected>
#include <filesystem>
#include <utility>

#include "tracer/format/model/trace_error.h"

namespace tt {

class WorkFolder {
 public:
  static std::expected<WorkFolder, TraceError> make(const std::filesystem::path& data_folder);
  WorkFolder(WorkFolder&& other) noexcept;
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();

  const std::filesystem::path& path() const { return path_; }

  // Removes the folders of processes that have ended.
  static void remove_abandoned(const std::filesystem::path& data_folder);

 private:
  WorkFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::filesystem::path path_;  // empty: moved from
  int lock_;                    // descriptor; the lock marks the folder as in use
};

}  // namespace tt
