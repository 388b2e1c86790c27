// Read-only virtual tables of SQLite, made from a list of columns and a cursor.
//
// A table says, per column, its name, type and value, and whether a condition on
// it spares work. The conditions of a statement then reach the cursor as ranges
// (Conditions). Leaving rows out by them is the cursor's choice: SQLite looks at
// every condition again, so a cursor that leaves out too little is slow, never
// wrong. One that leaves out a row that matches is wrong.
//
// Everything runs on the thread of the connection. Errors of the session become
// the statement's error with their own words.
//
// The same code serves the server, where it is linked with SQLite, and the
// loadable extension, where every call goes to the program that loaded it
// (host_sqlite.h).
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <expected>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tracer/format/model/trace_error.h"

namespace tt::sql {

class SessionSource;
class SessionSources;

template <class Value>
using Or = std::expected<Value, TraceError>;
using Done = std::expected<void, TraceError>;

// A value of a column, to be held against a condition. Monostate: NULL.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string_view>;

// Where the value of a column goes: to SQLite, or into a cell.
class Out {
 public:
  explicit Out(sqlite3_context* context) : context_(context) {}
  explicit Out(Cell& cell) : cell_(&cell) {}
  void null() {
    if (cell_ != nullptr) {
      *cell_ = std::monostate{};
    } else {
      sqlite3_result_null(context_);
    }
  }
  void integer(std::int64_t v) {
    if (cell_ != nullptr) {
      *cell_ = v;
    } else {
      sqlite3_result_int64(context_, v);
    }
  }
  void u64(std::uint64_t v) { integer(static_cast<std::int64_t>(v)); }
  void real(double v) {
    if (cell_ != nullptr) {
      *cell_ = v;
    } else {
      sqlite3_result_double(context_, v);
    }
  }
  // UTF-8, which SQLite does not ask for, but those who ask it do. `v` lives as long as the
  // connection: a word of ours, or a name that SessionSource keeps.
  void kept(std::string_view v) { text(v, SQLITE_STATIC); }
  void copied(std::string_view v) { text(v, SQLITE_TRANSIENT); }
  // An id that may be absent, as NULL.
  template <class Id>
  void id(Id id, Id none) {
    if (id == none) return null();
    integer(id.v);
  }

 private:
  void text(std::string_view v, sqlite3_destructor_type lifetime) {
    if (cell_ != nullptr) {
      *cell_ = v;
    } else {
      sqlite3_result_text64(context_, v.data() ? v.data() : "", v.size(), lifetime, SQLITE_UTF8);
    }
  }
  sqlite3_context* context_ = nullptr;
  Cell* cell_ = nullptr;
};

// What a condition on a column can spare.
enum class Spares : std::uint8_t {
  Nothing,
  Rows,   // within a chunk
  Chunks  // whole steps or templates, and of the others rows within
};

template <class Row>
struct Column {
  const char* name;
  const char* type;  // INTEGER, REAL or TEXT; with HIDDEN behind it not in SELECT *
  void (*value)(const Row& row, Out& out);
  Spares spares = Spares::Nothing;
};

// What the rows that are asked for have in one column: a closed range of integers,
// or one of some texts. Rows with NULL there are not asked for when it is set.
struct Wanted {
  std::int64_t from = std::numeric_limits<std::int64_t>::min();
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
  std::optional<std::vector<std::string>> texts{};

  bool holds(std::int64_t v) const { return from <= v && v <= to; }
  bool holds(std::string_view text) const;
  bool admits(const Cell& cell) const;  // reals always
  bool any() const { return is_open() && !texts; }
  bool is_open() const {
    return from == std::numeric_limits<std::int64_t>::min() &&
           to == std::numeric_limits<std::int64_t>::max();
  }
};

// A column as SQLite has to know it.
struct Field {
  const char* name;
  const char* type;
  Spares spares;
  bool is_text() const { return std::string_view(type).starts_with("TEXT"); }
};

class Conditions {
 public:
  explicit Conditions(std::span<const Field> columns)
      : columns_(columns), wanted_(columns.size()) {}
  const Wanted& of(std::size_t column) const { return wanted_[column]; }
  // Whether the statement may ask for the column's value.
  bool uses(std::size_t column) const { return (used_ >> std::min<std::size_t>(column, 63)) & 1; }
  // No row can match.
  bool impossible() const { return impossible_; }

  void narrow(std::size_t column, int op, sqlite3_value* value);
  void use(sqlite3_uint64 columns) { used_ = columns; }

 private:
  std::span<const Field> columns_;
  std::vector<Wanted> wanted_;
  sqlite3_uint64 used_ = ~sqlite3_uint64{0};
  bool impossible_ = false;
};

// The rows of one scan.
class Cursor {
 public:
  virtual ~Cursor() = default;
  // Stands on the first row afterwards, or at the end. May be called again.
  virtual Done start(const Conditions& conditions) = 0;
  virtual Done next() = 0;
  virtual bool at_end() const = 0;
  virtual void value(std::size_t column, Out& out) const = 0;
  // Of the row in the whole table, whatever the conditions are.
  virtual Or<std::int64_t> row_id() const = 0;
};

// Rows that come in pieces: those of a step, of a template. A Row has a `row_id`.
// Rows that do not meet the conditions on columns which spare something are left out
// here. Such a column's text lives as long as its row.
template <class Row>
class ChunkCursor : public Cursor {
 public:
  explicit ChunkCursor(std::span<const Column<Row>> columns) : columns_(columns) {}
  Done start(const Conditions& conditions) final {
    rows_.clear();
    at_ = 0;
    if (conditions.impossible()) return {};
    filters_.clear();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].spares != Spares::Nothing && !conditions.of(i).any())
        filters_.emplace_back(i, conditions.of(i));
    }
    if (auto begun = begin(conditions); !begun) return begun;
    return refill();
  }
  Done next() final {
    if (++at_ < rows_.size()) return {};
    return refill();
  }
  bool at_end() const final { return at_ >= rows_.size(); }
  void value(std::size_t column, Out& out) const final { columns_[column].value(rows_[at_], out); }
  Or<std::int64_t> row_id() const final { return rows_[at_].row_id; }

 protected:
  virtual Done begin(const Conditions& conditions) = 0;
  // Appends the rows of the next chunk, perhaps none; false: there is no chunk left.
  virtual Or<bool> more(std::vector<Row>& rows) = 0;

 private:
  Done refill() {
    at_ = 0;
    do {
      rows_.clear();
      const auto found = more(rows_);
      if (!found) return std::unexpected(found.error());
      if (!*found) return {};
      if (!filters_.empty()) std::erase_if(rows_, [&](const Row& row) { return !passes(row); });
    } while (rows_.empty());
    return {};
  }
  bool passes(const Row& row) const {
    for (const auto& [column, wanted] : filters_) {
      Cell cell;
      Out out(cell);
      columns_[column].value(row, out);
      if (!wanted.admits(cell)) return false;
    }
    return true;
  }
  std::span<const Column<Row>> columns_;
  std::vector<std::pair<std::size_t, Wanted>> filters_;
  std::vector<Row> rows_;
  std::size_t at_ = 0;
};

// A table as SQLite has to know it.
struct Table {
  const char* name = "";
  std::vector<Field> fields;
  double rows = 1;    // about: in which order tables are joined
  double chunks = 1;  // of them
  // The first columns are what the rows are ordered by, all ascending.
  std::size_t ordered_by = 0;
  std::unique_ptr<Cursor> (*open)(SessionSource& source) = nullptr;
};

template <class Row>
Table table_of(const char* name, std::span<const Column<Row>> columns) {
  Table table;
  table.name = name;
  for (const Column<Row>& column : columns)
    table.fields.push_back({column.name, column.type, column.spares});
  return table;
}

// Place of a column in its list; a name that is not in it does not compile.
template <class Columns>
consteval std::size_t place(const Columns& columns, std::string_view name) {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (name == columns[i].name) return i;
  throw "no such column";
}

// Adds `table` to a connection under its own name. `sources` says which session a
// connection's tables are about. SQLite's result code.
int add_table(sqlite3* db, Table table, const std::shared_ptr<SessionSources>& sources);

// A value's text, nothing of NULL. SQLite's own, until the value is asked for as another type.
std::string_view text_of(sqlite3_value* value);

}  // namespace tt::sql
