// A session on its way in, its file, the log of one or its run folder as a tar archive: bytes as
// they come, to a file of their own in the data folder; the whole is checked, and only then it is a
// session. Of a log or a run folder one is made (api/exchange/import/import.h). Whatever goes
// wrong, nothing is left behind. One thread.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <span>

#include "analysis/common/page.h"
#include "api/json/problem.h"
#include "server/sessions/retention.h"
#include "server/sessions/session_store.h"
#include "server/sessions/work_folder.h"

namespace tt {

enum class ImportForm : std::uint8_t { File, Log, RunFolder };

class SessionImport {
 public:
  // `announced`: how large the file will be, when that is known; 507 when there
  // is no room for it, or it is a session that the quota has none for. What it is
  // given outlives it.
  static std::expected<SessionImport, Problem> begin(SessionStore& sessions, Retention& retention,
                                                     std::uint64_t announced, ImportForm form);
  SessionImport(SessionImport&& other) noexcept;
  SessionImport& operator=(SessionImport&&) = delete;
  ~SessionImport();

  // After a problem nothing more is taken.
  std::expected<void, Problem> add(std::span<const char> bytes);
  // 422 when it is no session, or not a whole one; no log of one; no run folder. What a
  // session has to be made of takes its time, as long as `keep_going` says so.
  std::expected<SessionStore::Taken, Problem> finish(const KeepGoing& keep_going = always);

 private:
  SessionImport(SessionStore& sessions, Retention& retention, WorkFolder folder, int file,
                ImportForm form);
  std::expected<void, Problem> convert(const KeepGoing& keep_going);
  std::expected<std::filesystem::path, Problem> unpack(const KeepGoing& keep_going);

  SessionStore& sessions_;
  Retention& retention_;
  WorkFolder folder_;
  ImportForm form_;
  std::filesystem::path path_;  // of what is sent
  int file_;                    // descriptor; -1: closed
  std::uint64_t bytes_ = 0;
  std::uint64_t room_looked_at_ = 0;  // of `bytes_`
};

}  // namespace tt
