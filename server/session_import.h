// A session file on its way in: bytes as they come, to a file of their own in the
// data folder; the whole is checked, and only then it is a session. Whatever goes
// wrong, nothing is left behind. One thread.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <span>

#include "api/problem.h"
#include "server/retention.h"
#include "server/session_store.h"
#include "server/work_folder.h"

namespace tt {

class SessionImport {
 public:
  // `announced`: how large the file will be, when that is known; 507 when there
  // is no room for it. What it is given outlives it.
  static std::expected<SessionImport, Problem> begin(SessionStore& sessions, Retention& retention,
                                                     std::uint64_t announced);
  SessionImport(SessionImport&& other) noexcept;
  SessionImport& operator=(SessionImport&&) = delete;
  ~SessionImport();

  // After a problem nothing more is taken.
  std::expected<void, Problem> add(std::span<const char> bytes);
  // 422 when it is no session, or not a whole one.
  std::expected<SessionStore::Taken, Problem> finish();

 private:
  SessionImport(SessionStore& sessions, Retention& retention, WorkFolder folder, int file);

  SessionStore& sessions_;
  Retention& retention_;
  WorkFolder folder_;
  std::filesystem::path path_;
  int file_;  // descriptor; -1: closed
  std::uint64_t bytes_ = 0;
  std::uint64_t room_looked_at_ = 0;  // of `bytes_`
};

}  // namespace tt
