// Imports a session: a session file, a log, or a run folder as a tar archive. The received
// bytes are written to a temporary file in the data folder, converted if needed
// (api/exchange/import/import.h), checked completely, and only then added to the sessions. On
// any error the temporary files are removed. One thread.
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
  // `announced`: expected size in bytes, 0 if unknown. 507 when the disk or the quota has not
  // enough space. `sessions` and `retention` must outlive the import.
  static std::expected<SessionImport, Problem> begin(SessionStore& sessions, Retention& retention,
                                                     std::uint64_t expected_bytes, ImportForm form);
  SessionImport(SessionImport&& other) noexcept;
  SessionImport& operator=(SessionImport&&) = delete;
  ~SessionImport();

  // Appends received bytes. Do not call it again after an error.
  std::expected<void, Problem> add(std::span<const char> bytes);
  // Checks and adds the session. 422 when the data is not a complete session, log or run
  // folder. A conversion can take long; it stops when `keep_going` returns false.
  std::expected<SessionStore::ImportResult, Problem> finish(
      const ContinueCheck& keep_going = never_cancel);

 private:
  SessionImport(SessionStore& sessions, Retention& retention, Retention::Claim claim,
                WorkFolder folder, int file, ImportForm form);
  std::expected<void, Problem> convert(const ContinueCheck& keep_going);
  std::expected<std::filesystem::path, Problem> unpack(Retention::Claim& claim,
                                                       const ContinueCheck& keep_going);

  SessionStore& sessions_;
  Retention& retention_;
  Retention::Claim claim_;
  WorkFolder folder_;
  ImportForm form_;
  std::filesystem::path path_;  // of the received file
  int file_;                    // descriptor; -1: closed
  std::uint64_t bytes_ = 0;
};

}  // namespace tt
