// Sessions that were deleted and can still be brought back: files in a hidden
// folder of the data folder, whose names say until when. So a restart forgets
// nothing. Any thread; who moves files of one id at the same time gets an error.
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

// Unix time, nanoseconds. A parameter, so that tests can make an hour pass.
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
  static constexpr std::chrono::nanoseconds kKept = std::chrono::hours(1);

  SessionTrash(const std::filesystem::path& data_folder, UtcClock now);

  // Takes the file away; it is one, without a WAL. The folder is made when needed.
  std::expected<DeletedSession, TraceError> put(const std::string& id,
                                                const std::filesystem::path& file);
  // Moves the one of that id that was deleted last to `file`. NotFound; Exists
  // when there is a file.
  std::expected<void, TraceError> take_back(const std::string& id,
                                            const std::filesystem::path& file);
  // Oldest first.
  std::vector<DeletedSession> all() const;
  bool is_due(const DeletedSession& session) const {
    return session.restore_until_utc_ns <= now_();
  }
  std::expected<void, TraceError> purge(const DeletedSession& session);

 private:
  const std::filesystem::path folder_;
  const UtcClock now_;
};

}  // namespace tt
