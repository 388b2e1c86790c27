// RAII wrappers for SQLite handles, conversion of its errors to TraceError, and the rows of
// a session file. Every row ends with a CRC-32 of its columns, which RowWriter writes and RowReader
// checks. Private to tracer/format. One thread at a time.
#pragma once

#include <sqlite3.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tracer/format/file/crc32.h"
#include "tracer/format/model/trace_error.h"

namespace tt {

// The last error of `db` as a message for the user. Detects a full disk by errno and by the
// free space of the file system.
TraceError sqlite_error(sqlite3* db, int code);

class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* handle) : handle_(handle) {}
  // true: a row is available; false: done.
  std::expected<bool, TraceError> step();
  // Releases the row and the read lock.
  void reset();
  sqlite3_stmt* get() const { return handle_.get(); }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

class Database {
 public:
  enum class Mode { Create, ReadWrite, ReadOnly, Immutable };
  static std::expected<Database, TraceError> open(const std::filesystem::path& path, Mode mode);

  std::expected<Statement, TraceError> prepare(const char* sql) const;
  // Runs statements without result rows.
  std::expected<void, TraceError> run(const char* sql) const;
  // The first column of the first row as text; empty if there is no row.
  std::expected<std::string, TraceError> query_value(const char* sql) const;
  void busy_timeout(int ms) const { sqlite3_busy_timeout(handle_.get(), ms); }
  sqlite3* get() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
  };
  explicit Database(sqlite3* handle) : handle_(handle) {}
  std::unique_ptr<sqlite3, Close> handle_;
};

// Removes files beside `path` that SQLite ignores and leaves there: the journal of a writer that
// was killed before its first page was in it, and an empty WAL with its -shm, which a reader
// created that opened the file while it left WAL mode. `db` has left WAL mode. Does nothing while
// another connection uses the file.
void remove_unused_files(const Database& db, const std::filesystem::path& path);

// Binds the columns of one row in table order, then its crc, and inserts it.
// Texts and blobs must stay valid until insert().
class RowWriter {
 public:
  explicit RowWriter(Statement& statement) : statement_(statement) {}
  RowWriter& integer(std::int64_t v);
  RowWriter& integer_u64(std::uint64_t v) { return integer(static_cast<std::int64_t>(v)); }
  RowWriter& integer_u64_or_null(std::optional<std::uint64_t> v);
  RowWriter& text(std::string_view v);
  RowWriter& blob(std::span<const std::byte> v);
  std::expected<void, TraceError> insert();

 private:
  Statement& statement_;
  Crc32 crc_;
  int column_ = 0;
};

// Reads the columns of the current row, in table order. A column of the wrong type or out of
// range makes the row invalid; check once, at the end.
class RowReader {
 public:
  explicit RowReader(const Statement& statement) : row_(statement.get()) {}
  template <std::integral T>
  T integer() {
    const std::int64_t v = next_integer();
    if constexpr (sizeof(T) < 8) {
      if (!std::in_range<T>(v)) valid_ = false;
    }
    return static_cast<T>(v);
  }
  std::optional<std::uint64_t> integer_u64_or_null();
  bool flag() { return integer<std::int64_t>() != 0; }
  // Valid until the statement is stepped or reset.
  std::string_view text();
  std::span<const std::byte> blob();
  // Reads the crc column. false: the row is damaged.
  bool valid();

 private:
  std::int64_t next_integer();
  sqlite3_stmt* row_;
  Crc32 crc_;
  int column_ = 0;
  bool valid_ = true;
};

// Resets a statement at the end of a scope, to release its read lock.
class ScopedReset {
 public:
  explicit ScopedReset(Statement& s) : statement_(s) {}
  ~ScopedReset() { statement_.reset(); }
  ScopedReset(const ScopedReset&) = delete;
  ScopedReset& operator=(const ScopedReset&) = delete;

 private:
  Statement& statement_;
};

}  // namespace tt
