// The folder of session files: which there are, and a reader for each. The
// files are the truth; what is kept here is only not to read them again.
// Any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/page.h"
#include "api/json.h"
#include "tracer/format/session_reader.h"

namespace tt {

// Whether `id` may name a file of the folder: letters, digits, '-', '_' and
// '.', not first. So no id leads out of the folder.
bool is_session_id(std::string_view id);

class SessionStore {
 public:
  explicit SessionStore(std::filesystem::path folder);

  // Newest first (ids begin with the time); one being recorded is listed, too.
  // A file that cannot be read is listed with the reason. Only the files of the
  // page are read, and only when they changed since.
  std::expected<Page<SessionEntry>, TraceError> list(PageRange range);
  std::expected<SessionEntry, TraceError> entry(const std::string& id);
  std::expected<SessionReader, TraceError> open(const std::string& id) const;
  // Names the state that the session's file is in, and the program that answers
  // about it: as long as it is the same, so are the answers. None while it is
  // recorded, and of what is not there or cannot be read. Looks at the file's
  // size and time, not into it.
  std::optional<std::string> tag(const std::string& id);

 private:
  // What tells that a file is as it was: of the file and of the WAL beside it.
  struct Stamp {
    std::uint64_t bytes = 0, wal_bytes = 0;
    std::filesystem::file_time_type changed, wal_changed;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  struct Known {
    Stamp stamp;
    SessionEntry entry;
  };

  std::filesystem::path path_of(const std::string& id) const;
  static std::expected<Stamp, TraceError> stamp_of(const std::filesystem::path& path);

  const std::filesystem::path folder_;
  const std::string program_;  // which one this is: another may answer otherwise
  std::mutex mutex_;
  std::map<std::string, Known> known_;
};

}  // namespace tt
