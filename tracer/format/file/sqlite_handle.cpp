#include "tracer/format/file/sqlite_handle.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <format>

#include "tracer/format/file/input_file.h"
#include "tracer/format/file/shared_memory_guard.h"

namespace tt {

namespace {

namespace fs = std::filesystem;

constexpr int kBusyTimeoutMs = 5000;

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

bool out_of_space(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}

// Some failures (for example growing the -shm file) are reported without their errno.
bool disk_is_full(const std::string& path) {
  struct statvfs room{};
  if (statvfs(folder_of(path).c_str(), &room) != 0) return false;
  return room.f_blocks != 0 && room.f_bavail * room.f_frsize < 64 * 1024;
}

TraceError disk_full(const std::string& path) {
  return {TraceError::Kind::DiskFull,
          "the disk that holds " + path +
              " is full, so the recording stopped. What was recorded until then is kept. Free "
              "some space or choose another folder for sessions, then record again."};
}

TraceError error_of(int code, int system_errno, const std::string& path, const char* detail) {
  using Kind = TraceError::Kind;
  if (code == kSharedMemoryLost)
    return {Kind::Io,
            std::format("another program truncated {}-shm, which SQLite needs while a session is "
                        "recorded. What was recorded until then is kept.",
                        path)};
  switch (code & 0xff) {
    case SQLITE_FULL:
      return disk_full(path);
    case SQLITE_IOERR:
      if (out_of_space(system_errno) || disk_is_full(path)) return disk_full(path);
      // Deleted while it was opened.
      if (system_errno == ENOENT && access(path.c_str(), F_OK) != 0)
        return {Kind::NotFound, path + " does not exist any more"};
      if (code == SQLITE_IOERR_SHMOPEN || code == SQLITE_IOERR_SHMSIZE ||
          code == SQLITE_IOERR_SHMMAP || code == SQLITE_IOERR_SHMLOCK)
        return {Kind::WalUnsupported,
                "the file system that holds " + path +
                    " does not support shared memory between processes, which recording needs. "
                    "Choose a folder for sessions on a local disk."};
      return {Kind::Io, std::format("input or output failed on {}: {}", path,
                                    system_errno != 0 ? std::strerror(system_errno) : detail)};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {Kind::Damaged, std::format("{} is damaged ({})", path, detail)};
    case SQLITE_READONLY:
      return {Kind::ReadOnly, path + " cannot be written. Check the permissions of its folder."};
    case SQLITE_CANTOPEN:
      // SQLite tries to open a file read-only when it may not create it. ENOENT then hides the
      // missing permission.
      if (system_errno == EACCES || system_errno == EPERM || system_errno == EROFS ||
          (access(folder_of(path).c_str(), F_OK) == 0 &&
           access(folder_of(path).c_str(), W_OK) != 0))
        return {Kind::ReadOnly, path + " cannot be opened. Check the permissions of its folder."};
      if (system_errno == ENOENT) return {Kind::NotFound, path + " or its folder does not exist"};
      if (out_of_space(system_errno) || disk_is_full(path)) return disk_full(path);
      return {Kind::Io, std::format("{} cannot be opened: {}", path,
                                    system_errno != 0 ? std::strerror(system_errno) : detail)};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {Kind::Io, path + " is in use by another program. Try again when it has ended."};
    default:
      return {Kind::Io, std::format("{}: {}", path, detail)};
  }
}

// Escapes the characters with a special meaning in an SQLite URI.
std::string uri_of(const std::filesystem::path& path, std::string_view query) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    if (c == '?' || c == '#' || c == '%')
      uri += std::format("%{:02X}", static_cast<unsigned>(c));
    else
      uri += c;
  }
  return uri.append("?").append(query);
}

}  // namespace

TraceError sqlite_error(sqlite3* db, int code) {
  const char* path = sqlite3_db_filename(db, "main");
  return error_of(code, sqlite3_system_errno(db), path ? path : "", sqlite3_errmsg(db));
}

std::expected<bool, TraceError> Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return std::unexpected(sqlite_error(sqlite3_db_handle(handle_.get()), code));
}

void Statement::reset() {
  sqlite3_reset(handle_.get());
  sqlite3_clear_bindings(handle_.get());
}

std::expected<Database, TraceError> Database::open(const std::filesystem::path& path, Mode mode) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI;
  switch (mode) {
    case Mode::Create:
      flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      break;
    case Mode::ReadWrite:
      flags |= SQLITE_OPEN_READWRITE;
      break;
    case Mode::ReadOnly:
    case Mode::Immutable:
      flags |= SQLITE_OPEN_READONLY;
      break;
  }
  // SQLite would wait for a writer if the journal were a FIFO.
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) {
    const std::filesystem::path file = path.string() + suffix;
    std::error_code failed;
    const std::string reason = not_regular_reason(std::filesystem::status(file, failed).type());
    if (!reason.empty())
      return std::unexpected(TraceError{
          TraceError::Kind::Io, std::format("{} cannot be read: {}", file.string(), reason)});
  }
  const std::string uri = uri_of(path, mode == Mode::Immutable ? "immutable=1" : "");
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(uri.c_str(), &handle, flags, nullptr);
  if (handle == nullptr) return std::unexpected(TraceError{TraceError::Kind::Io, "out of memory"});
  Database db(handle);
  if (code != SQLITE_OK)
    return std::unexpected(
        error_of(code, sqlite3_system_errno(handle), path.string(), sqlite3_errmsg(handle)));
  // The file is untrusted: disable functions in the schema, triggers and views, check cells, and
  // limit the size of values to that of the largest possible step, and the schema and statements
  // to what a session needs.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  // A read-only connection cannot write, and would not open truncated files.
  if (mode == Mode::ReadWrite) sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  constexpr std::array kLimits = {
      std::pair{SQLITE_LIMIT_LENGTH, 256 << 20},  std::pair{SQLITE_LIMIT_SQL_LENGTH, 8192},
      std::pair{SQLITE_LIMIT_COLUMN, 40},         std::pair{SQLITE_LIMIT_EXPR_DEPTH, 20},
      std::pair{SQLITE_LIMIT_COMPOUND_SELECT, 2}, std::pair{SQLITE_LIMIT_VDBE_OP, 10'000},
      std::pair{SQLITE_LIMIT_FUNCTION_ARG, 8},    std::pair{SQLITE_LIMIT_ATTACHED, 0},
      std::pair{SQLITE_LIMIT_TRIGGER_DEPTH, 1},   std::pair{SQLITE_LIMIT_WORKER_THREADS, 0},
  };
  for (const auto& [which, limit] : kLimits) sqlite3_limit(handle, which, limit);
  if (auto set = db.run("PRAGMA cell_size_check=ON"); !set) return std::unexpected(set.error());
  db.busy_timeout(kBusyTimeoutMs);
  return db;
}

std::expected<Statement, TraceError> Database::prepare(const char* sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v3(get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  // A missing table or column is damage: application id and version have been checked.
  if (code == SQLITE_ERROR)
    return std::unexpected(
        error_of(SQLITE_CORRUPT, 0, sqlite3_db_filename(get(), "main"), sqlite3_errmsg(get())));
  if (code != SQLITE_OK) return std::unexpected(sqlite_error(get(), code));
  return Statement(statement);
}

Status Database::run(const char* sql) const {
  const int code = sqlite3_exec(get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return std::unexpected(sqlite_error(get(), code));
  return {};
}

std::expected<std::string, TraceError> Database::query_value(const char* sql) const {
  auto statement = prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  const auto row = statement->step();
  if (!row) return std::unexpected(row.error());
  const auto* text =
      *row ? reinterpret_cast<const char*>(sqlite3_column_text(statement->get(), 0)) : nullptr;
  return std::string(text ? text : "");
}

void remove_unused_files(const Database& db, const fs::path& path) {
  const fs::path journal = path.string() + "-journal", wal = path.string() + "-wal";
  std::error_code ignored;
  if (!fs::exists(journal, ignored) && !fs::exists(wal, ignored)) return;
  db.busy_timeout(0);
  // A journal that matters is applied before this lock is given, and who has the file open in WAL
  // mode keeps it from being given.
  if (db.run("BEGIN EXCLUSIVE")) {
    fs::remove(journal, ignored);
    if (fs::file_size(wal, ignored) == 0) {
      fs::remove(wal, ignored);
      fs::remove(path.string() + "-shm", ignored);
    }
    (void)db.run("COMMIT");
  }
  db.busy_timeout(kBusyTimeoutMs);
}

RowWriter& RowWriter::integer(std::int64_t v) {
  sqlite3_bind_int64(statement_.get(), ++column_, v);
  crc_.add_u64(static_cast<std::uint64_t>(v));
  return *this;
}

// A null adds nothing to the crc; a flipped bit that makes an integer of it, or the reverse, adds
// or removes 8 bytes.
RowWriter& RowWriter::integer_u64_or_null(std::optional<std::uint64_t> v) {
  if (v) return integer_u64(*v);
  sqlite3_bind_null(statement_.get(), ++column_);
  return *this;
}

RowWriter& RowWriter::text(std::string_view v) {
  sqlite3_bind_text64(statement_.get(), ++column_, v.data() ? v.data() : "", v.size(),
                      SQLITE_STATIC, SQLITE_UTF8);
  crc_.add_u64(v.size());
  crc_.add(std::as_bytes(std::span(v)));
  return *this;
}

RowWriter& RowWriter::blob(std::span<const std::byte> v) {
  // A null pointer would bind NULL.
  sqlite3_bind_blob64(statement_.get(), ++column_,
                      v.empty() ? "" : static_cast<const void*>(v.data()), v.size(), SQLITE_STATIC);
  crc_.add_u64(v.size());
  crc_.add(v);
  return *this;
}

Status RowWriter::insert() {
  sqlite3_bind_int64(statement_.get(), ++column_, crc_.value());
  const auto done = statement_.step();
  statement_.reset();
  if (!done) return std::unexpected(done.error());
  return {};
}

std::int64_t RowReader::next_integer() {
  sqlite3_value* const column = sqlite3_column_value(row_, column_++);
  if (sqlite3_value_type(column) != SQLITE_INTEGER) valid_ = false;
  const std::int64_t v = sqlite3_value_int64(column);
  crc_.add_u64(static_cast<std::uint64_t>(v));
  return v;
}

std::optional<std::uint64_t> RowReader::integer_u64_or_null() {
  if (sqlite3_column_type(row_, column_) != SQLITE_NULL)
    return static_cast<std::uint64_t>(next_integer());
  ++column_;
  return std::nullopt;
}

std::string_view RowReader::text() {
  if (sqlite3_column_type(row_, column_) != SQLITE_TEXT) valid_ = false;
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(row_, column_));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row_, column_++));
  const std::string_view v(data ? data : "", data ? size : 0);
  crc_.add_u64(v.size());
  crc_.add(std::as_bytes(std::span(v)));
  return v;
}

std::span<const std::byte> RowReader::blob() {
  if (sqlite3_column_type(row_, column_) != SQLITE_BLOB) valid_ = false;
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(row_, column_));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row_, column_++));
  const std::span<const std::byte> v(data, data ? size : 0);
  crc_.add_u64(v.size());
  crc_.add(v);
  return v;
}

bool RowReader::valid() {
  const std::uint32_t expected = crc_.value();
  return integer<std::uint32_t>() == expected && valid_;
}

}  // namespace tt
