#include "tracer/format/file/session_edit.h"

#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "tracer/format/file/file_header.h"
#include "tracer/format/file/session_owner.h"
#include "tracer/format/file/session_schema.h"
#include "tracer/format/file/session_tables.h"
#include "tracer/format/file/sqlite_handle.h"
#include "tracer/format/model/session.h"

namespace tt {

namespace {

namespace fs = std::filesystem;

constexpr int kPagesPerStep = 1024;  // 4 MiB

bool is_running(const Meta& meta) {
  const auto state = meta.find("state");
  return state != meta.end() && state->second == to_text(SessionState::Running);
}

TraceError running(const fs::path& file) {
  return {TraceError::Kind::Running,
          file.stem().string() + " is being recorded. Wait until it has ended."};
}

std::expected<Database, TraceError> open_for_edit(const fs::path& file) {
  if (auto header = check_file_header(file); !header) return std::unexpected(header.error());
  auto db = Database::open(file, Database::Mode::ReadWrite);
  if (!db) return db;
  if (auto schema = check_schema(*db); !schema) return std::unexpected(schema.error());
  return db;
}

// Changes metadata in one transaction, unless the session is running.
Status change_meta(const fs::path& file, const Database& db, const Meta& change) {
  if (auto begun = db.run("BEGIN IMMEDIATE"); !begun) return begun;
  const auto changed = read_meta(db).and_then([&](const Meta& meta) -> Status {
    if (is_running(meta)) return std::unexpected(running(file));
    return write_meta(db, change);
  });
  if (!changed) {
    (void)db.run("ROLLBACK");
    return changed;
  }
  return db.run("COMMIT");
}

Status leave_wal(const fs::path& file, const Database& db) {
  const auto mode = db.query_value("PRAGMA journal_mode=DELETE");
  if (!mode) return std::unexpected(mode.error());
  if (*mode == "delete") return {};
  return std::unexpected(TraceError{
      TraceError::Kind::Io, file.stem().string() + " is being read. Try again in a moment."});
}

struct FinishBackup {
  void operator()(sqlite3_backup* backup) const noexcept { sqlite3_backup_finish(backup); }
};

// Uses one read transaction: in WAL mode it does not block the writer, and commits made
// meanwhile do not restart the backup.
Status copy_pages(const Database& from, const Database& to, const CopyProgress& on_progress) {
  if (auto begun = from.run("BEGIN"); !begun) return begun;
  if (auto seen = from.query_value("SELECT count(*) FROM sqlite_schema"); !seen)
    return std::unexpected(seen.error());
  const std::unique_ptr<sqlite3_backup, FinishBackup> backup(
      sqlite3_backup_init(to.get(), "main", from.get(), "main"));
  if (!backup) return std::unexpected(sqlite_error(to.get(), sqlite3_errcode(to.get())));
  if (auto allowed = on_progress(0); !allowed) return allowed;
  while (true) {
    const int code = sqlite3_backup_step(backup.get(), kPagesPerStep);
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_OK) return std::unexpected(sqlite_error(to.get(), code));
    const auto pages = static_cast<std::uint64_t>(sqlite3_backup_pagecount(backup.get()) -
                                                  sqlite3_backup_remaining(backup.get()));
    if (auto allowed = on_progress(pages * 4096); !allowed) return allowed;
  }
}

Status copy_file(const fs::path& file, const fs::path& copy, const CopyProgress& on_progress) {
  if (auto header = check_file_header(file); !header) return header;
  const auto from = Database::open(file, Database::Mode::ReadOnly);
  if (!from) return std::unexpected(from.error());
  if (auto schema = check_schema(*from); !schema) return schema;
  const auto to = Database::open(copy, Database::Mode::Create);
  if (!to) return std::unexpected(to.error());
  // The copy is not in use yet; after a crash it is discarded. No journal is needed.
  return to->run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF").and_then([&] {
    return copy_pages(*from, *to, on_progress);
  });
}

// Leaves WAL mode, marks a running session recovered and sets the id. Writes only what
// differs: otherwise the file stays identical, byte for byte.
Status finish_copy(const fs::path& copy, const std::optional<std::string>& id) {
  auto db = open_for_edit(copy);
  if (!db) return std::unexpected(db.error());
  return leave_wal(copy, *db).and_then([&]() -> Status {
    auto meta = read_meta(*db);
    if (!meta) return std::unexpected(meta.error());
    if (is_running(*meta)) {
      if (auto marked = mark_recovered(*db); !marked) return marked;
    }
    return !id || (*meta)["id"] == *id ? Status{} : change_meta(copy, *db, {{"id", *id}});
  });
}

}  // namespace

Status rename_session(const fs::path& file, const std::string& title) {
  const auto db = open_for_edit(file);
  if (!db) return std::unexpected(db.error());
  return change_meta(file, *db, {{"title", title}});
}

Status checkpoint_session(const fs::path& file) {
  const auto db = open_for_edit(file);
  if (!db) return std::unexpected(db.error());
  const auto meta = read_meta(*db);
  if (!meta) return std::unexpected(meta.error());
  if (is_running(*meta)) return std::unexpected(running(file));
  if (auto left = leave_wal(file, *db); !left) return left;
  remove_unused_files(*db, file);
  return {};
}

std::expected<bool, TraceError> is_being_recorded(const fs::path& file) {
  if (auto header = check_file_header(file); !header) return std::unexpected(header.error());
  const auto meta_of = [&](Database::Mode mode) {
    return Database::open(file, mode).and_then([](const Database& db) {
      return check_schema(db).and_then([&] { return read_meta(db); });
    });
  };
  auto meta = meta_of(Database::Mode::ReadOnly);
  // On a full disk and in a read-only folder, a file in WAL mode can be opened only without its
  // WAL. The file itself names the recording process from the begin.
  if (!meta && meta.error().kind != TraceError::Kind::Damaged)
    meta = meta_of(Database::Mode::Immutable);
  if (!meta) return std::unexpected(meta.error());
  const Owner owner = owner_state(*meta);
  // A writer that could not store the final state has removed its reserve.
  std::error_code none;
  return is_running(*meta) && (owner == Owner::Alive || owner == Owner::Self) &&
         fs::exists(file.string() + "-reserve", none);
}

Status copy_session(const fs::path& file, const fs::path& copy, const CopyProgress& on_progress) {
  auto done =
      copy_file(file, copy, on_progress).and_then([&] { return finish_copy(copy, std::nullopt); });
  if (done) return done;
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) {
    std::error_code ignored;
    fs::remove(copy.string() + suffix, ignored);
  }
  return done;
}

Status assign_session_id(const fs::path& file, const std::string& id) {
  return finish_copy(file, id);
}

}  // namespace tt
