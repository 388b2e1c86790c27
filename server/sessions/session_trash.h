// Deleted sessions that can still be restored: files in a hidden folder of the data folder.
// The restore deadline is part of the file name, so it survives a restart. Any thread;
// concurrent moves of the same id return an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tracer/format/model/trace_error.h"

namespace tt {

// Unix time in nanoseconds. A parameter, so that tests can set the time.
using UtcClock = std::function<std::int64_t()>;
std::int64_t utc_now_ns();

struct DeletedSession {
  std::string id;
  std::int64_t restore_until_utc_ns = 0;
  std::filesystem::path path;
  std::uint64_t bytes = 0;
};

class SessionTrash {
 public:
  static constexpr std::chrono::nanoseconds kRestorePeriod = std::chrono::hours(1);

  SessionTrash(const std::filesystem::path& data_folder, UtcClock now);

  // Moves a session file, with its WAL, to the trash. Readers that have it open are not disturbed.
  // Creates the folder if needed. Removes the file at once if the disk has no space for the folder:
  // then `restore_until_utc_ns` has passed.
  std::expected<DeletedSession, TraceError> put(const std::string& id,
                                                const std::filesystem::path& file);
  // Moves the most recently deleted session with this id to `file`. NotFound; Exists when
  // `file` exists.
  std::expected<void, TraceError> restore(const std::string& id, const std::filesystem::path& file);
  // Oldest first.
  std::vector<DeletedSession> all() const;
  bool is_expired(const DeletedSession& session) const {
    return session.restore_until_utc_ns <= now_();
  }
  std::expected<void, TraceError> purge(const DeletedSession& session);

 private:
  const std::filesystem::path folder_;
  const UtcClock now_;
};

}  // namespace tt
