// Maps session ids to files: those in the data folder, which the server records and may
// change, and those given on the command line, which it opens read-only. Any thread.
#pragma once

#include <expected>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/format/model/trace_error.h"

namespace tt {

// Returns true when `id` is a valid file name stem in the data folder: letters, digits, '-',
// '_' and '.', not starting with '.'. A valid id cannot refer to a path outside the folder.
bool is_session_id(std::string_view id);

struct SessionFile {
  std::string id;
  std::filesystem::path path;
  bool owned = true;  // in the data folder: the server may change and remove it
};

class SessionFiles {
 public:
  // `elsewhere`: session files, and folders with session files.
  explicit SessionFiles(std::filesystem::path folder,
                        std::vector<std::filesystem::path> external = {});

  const std::filesystem::path& folder() const { return folder_; }
  // Path of a session in the data folder, whether or not it exists. `id` must be valid.
  std::filesystem::path path_of(const std::string& id) const;

  // Lists the current files, unordered. In the data folder: `<id>.ttrace`, regular files only,
  // because a link could lead outside. Elsewhere the id is derived from the file name; it is
  // changed where it is not valid or already taken, and stays the same while the server runs.
  std::expected<std::vector<SessionFile>, TraceError> all() const;
  std::optional<SessionFile> find(const std::string& id) const;
  // Those that are not in the data folder.
  std::vector<SessionFile> external() const;

 private:
  std::string id_for(const std::filesystem::path& file) const;  // requires mutex_

  const std::filesystem::path folder_;
  const std::vector<std::filesystem::path> external_;
  mutable std::mutex mutex_;
  mutable std::map<std::filesystem::path, std::string> ids_;  // of files elsewhere
};

}  // namespace tt
