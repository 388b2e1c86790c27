// A folder of its own in the data folder for a file on its way: an upload, a
// snapshot. Removed with everything in it at the end of the scope; what a killed
// server left is removed by the next one. Movable resource.
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

  // What others left that do not live any more.
  static void remove_abandoned(const std::filesystem::path& data_folder);

 private:
  WorkFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::filesystem::path path_;  // empty: moved from
  int lock_;                    // descriptor; the lock tells others that it is in use
};

}  // namespace tt
