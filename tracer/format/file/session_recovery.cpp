// recover_session(): recovers the session file of a dead process.
#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <vector>

#include "tracer/format/file/file_header.h"
#include "tracer/format/file/session_owner.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_schema.h"
#include "tracer/format/file/session_tables.h"
#include "tracer/format/file/sqlite_handle.h"

namespace tt {

namespace {

namespace fs = std::filesystem;

// Returns whether the session was Running and is now Recovered. A file that is in use,
// damaged or not a session is not changed.
bool recover(const fs::path& path) {
  if (!check_file_header(path)) return false;
  auto db = Database::open(path, Database::Mode::ReadWrite);
  if (!db) return false;
  db->busy_timeout(0);
  if (!check_schema(*db)) return false;
  const auto meta = read_meta(*db);
  if (!meta) return false;
  const auto state = meta->find("state");
  const bool running = state != meta->end() && state->second == to_text(SessionState::Running);
  if (owner_state(*meta) == Owner::Alive) return false;

  // Leaving WAL mode needs exclusive access: it fails while any process has the file open,
  // including one in another container, whose pid is meaningless here.
  const auto leave_wal = [&] { return db->query_value("PRAGMA journal_mode=DELETE"); };
  const auto remove_reserve = [&] {
    std::error_code ignored;
    fs::remove(path.string() + "-reserve", ignored);
  };
  auto mode = leave_wal();
  if (!mode && mode.error().kind == TraceError::Kind::DiskFull) {
    remove_reserve();  // DiskFull is reached only with exclusive access
    mode = leave_wal();
  }
  if (!mode || *mode != "delete") return false;
  remove_reserve();
  remove_unused_files(*db, path);
  return running && mark_recovered(*db).has_value();
}

// Removes a file left by a kill during SessionWriter::create(); a recent one may be in use.
void remove_unfinished(const fs::directory_entry& entry) {
  std::error_code error;
  const auto written = entry.last_write_time(error);
  if (!error && fs::file_time_type::clock::now() - written > std::chrono::minutes(1))
    fs::remove(entry.path(), error);
}

}  // namespace

std::optional<RecoveredSession> recover_session(const fs::path& path) {
  if (!recover(path)) return std::nullopt;
  const auto reader = SessionReader::open(path);
  const auto steps = reader ? reader->step_count() : 0;
  return RecoveredSession{path, steps.value_or(0)};
}

std::expected<std::vector<RecoveredSession>, TraceError> recover_sessions(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> sessions;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    const std::string name = it->path().filename().string();
    if (name.ends_with(".ttrace"))
      sessions.push_back(it->path());
    else if (name.ends_with(".ttrace-new"))
      remove_unfinished(*it);
  }
  if (error == std::errc::no_such_file_or_directory)
    return std::unexpected(
        TraceError{TraceError::Kind::NotFound, folder.string() + " does not exist"});
  if (error)
    return std::unexpected(
        TraceError{TraceError::Kind::Io, folder.string() + " cannot be read: " + error.message()});
  std::ranges::sort(sessions);

  std::vector<RecoveredSession> recovered;
  for (const fs::path& path : sessions) {
    if (const auto session = recover_session(path)) recovered.push_back(*session);
  }
  return recovered;
}

}  // namespace tt
