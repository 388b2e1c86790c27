// Which files are sessions, and by which ids they go: those of the data folder,
// which the server records and may change, and those that it was started with,
// which it only reads. Any thread.
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

// Whether `id` may name a file of the data folder: letters, digits, '-', '_' and
// '.', not first. So no id leads out of the folder.
bool is_session_id(std::string_view id);

struct SessionFile {
  std::string id;
  std::filesystem::path path;
  bool ours = true;  // in the data folder: the server may change and remove it
};

class SessionFiles {
 public:
  // `elsewhere`: session files, and folders that hold some.
  explicit SessionFiles(std::filesystem::path folder,
                        std::vector<std::filesystem::path> elsewhere = {});

  const std::filesystem::path& folder() const { return folder_; }
  // Of a session in the data folder, be it there or not. The id must be one.
  std::filesystem::path path_of(const std::string& id) const;

  // What lies there at this moment, in no order. In the data folder `<id>.ttrace`,
  // no links: one could lead anywhere. Elsewhere a file's id is its name, changed
  // where it is no id or already taken; it keeps it as long as the server runs.
  std::expected<std::vector<SessionFile>, TraceError> all() const;
  std::optional<SessionFile> find(const std::string& id) const;

 private:
  std::vector<SessionFile> elsewhere() const;
  std::string id_for(const std::filesystem::path& file) const;  // mutex_ is held

  const std::filesystem::path folder_;
  const std::vector<std::filesystem::path> elsewhere_;
  mutable std::mutex mutex_;
  mutable std::map<std::filesystem::path, std::string> ids_;  // of files elsewhere
};

}  // namespace tt
