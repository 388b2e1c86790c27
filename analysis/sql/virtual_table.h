// Read-only SQLite virtual tables, defined by a list of columns and a cursor.
//
// A table defines the name, type and value of each column, and whether conditions on it are
// pushed down to the cursor. The cursor receives the conditions of a statement as ranges
// (Conditions). It may skip rows that do not match, but need not, because SQLite checks every
// condition again. It must not skip a row that matches.
//
// Everything runs on the thread of the connection. An error of the session becomes the error
// of the statement, with the same message.
//
// The same code is used by the server, linked with SQLite, and by the loadable extension,
// where SQLite calls go to the host program (host_sqlite.h).
#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <expected>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/columns/column.h"
#include "tracer/format/model/trace_error.h"

namespace tt::sql {

class SessionSet;
class SessionSource;
class SessionSources;

// A column value to be checked against a condition. std::monostate is NULL.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string_view>;

// Receives the value of a column: as an SQLite result, or in a cell.
class Output {
 public:
  explicit Output(sqlite3_context* context) : context_(context) {}
  explicit Output(Cell& cell) : cell_(&cell) {}
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
  void flag(bool v) { integer(v); }
  void count(std::uint64_t v) { integer(static_cast<std::int64_t>(v)); }
  void real(double v) {
    if (cell_ != nullptr) {
      *cell_ = v;
    } else {
      sqlite3_result_double(context_, v);
    }
  }
  // `v` must be UTF-8: SQLite does not check it, but its clients require it. text() does not
  // copy; `v` must outlive the connection: a string constant, or a name of SessionSource.
  void text(std::string_view v) { set_text(v, SQLITE_STATIC); }
  // `v` may be temporary, so a condition on the column cannot be pushed down.
  void text_copy(std::string_view v) { set_text(v, SQLITE_TRANSIENT); }

 private:
  void set_text(std::string_view v, sqlite3_destructor_type lifetime) {
    if (cell_ != nullptr) {
      *cell_ = v;
    } else {
      sqlite3_result_text64(context_, v.data() ? v.data() : "", v.size(), lifetime, SQLITE_UTF8);
    }
  }
  sqlite3_context* context_ = nullptr;
  Cell* cell_ = nullptr;
};

using columns::Pushdown;

// `hidden`: not part of SELECT *.
consteval const char* sql_type(columns::Type type, bool hidden) {
  if (type == columns::Type::Text) return hidden ? "TEXT HIDDEN" : "TEXT";
  if (type == columns::Type::Float) return hidden ? "REAL HIDDEN" : "REAL";
  return hidden ? "INTEGER HIDDEN" : "INTEGER";
}

template <class Value>
consteval columns::Type type_of() {
  if constexpr (columns::is_optional<Value>) {
    return type_of<typename Value::value_type>();
  } else if constexpr (std::convertible_to<Value, std::string_view>) {
    return columns::Type::Text;
  } else {
    return std::floating_point<Value> ? columns::Type::Float : columns::Type::Int64;
  }
}

template <class Row>
struct Column {
  const char* name = "";
  const char* type = "";
  void (*value)(const Row& row, Output& out) = nullptr;
  Pushdown pushdown = Pushdown::None;
  const char* name_in_set = nullptr;  // null: `name`

  constexpr Column() = default;
  // A column of a definition.
  consteval Column(const columns::BoundColumn<Row, Output>& column, bool hidden)
      : name(column.name),
        type(sql_type(column.type, hidden)),
        value(column.value),
        pushdown(column.pushdown),
        name_in_set(column.name_in_set) {}
  // A column of this table alone. `get(row)` returns the value; without one, an optional, NULL.
  template <class Get>
    requires std::invocable<Get, const Row&>
  consteval Column(const char* of_name, Get, Pushdown pushed_down = Pushdown::None,
                   bool hidden = false)
      : name(of_name), pushdown(pushed_down) {
    using Value = std::remove_cvref_t<std::invoke_result_t<Get, const Row&>>;
    if (std::same_as<Value, std::string> && pushed_down != Pushdown::None)
      throw "the text does not live as long as its row";
    type = sql_type(type_of<Value>(), hidden);
    value = [](const Row& row, Output& out) { columns::write(Get{}(row), out); };
  }
};

// The columns of a definition (analysis/columns) for rows of type `Row`: first the visible ones,
// then the hidden ones: former names, and columns with the same value in all rows.
template <class Row, auto table>
consteval auto sql_columns() {
  constexpr auto bound = columns::bind<Row, Output>(table());
  constexpr auto former = std::ranges::count_if(
      bound, [](const columns::ColumnInfo& info) { return info.former_name != nullptr; });
  std::array<Column<Row>, bound.size() + static_cast<std::size_t>(former)> list{};
  std::size_t n = 0;
  for (const bool hidden : {false, true}) {
    for (const auto& column : bound) {
      if (column.per_session == hidden) list[n++] = {column, hidden};
      if (!hidden || column.former_name == nullptr) continue;
      auto renamed = column;
      renamed.name = column.former_name;
      renamed.pushdown = Pushdown::None;
      renamed.name_in_set = nullptr;
      list[n++] = {renamed, hidden};
    }
  }
  return list;
}

// The columns of two lists, in this order.
template <class Row, std::size_t N, std::size_t M>
consteval std::array<Column<Row>, N + M> joined(const std::array<Column<Row>, N>& first,
                                                const std::array<Column<Row>, M>& second) {
  std::array<Column<Row>, N + M> list{};
  std::ranges::copy(first, list.begin());
  std::ranges::copy(second, list.begin() + N);
  return list;
}

// The constraint on one column: a closed range of integers, or a list of texts. If a
// constraint is set, NULL does not match.
struct ColumnConstraint {
  std::int64_t from = std::numeric_limits<std::int64_t>::min();
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
  std::optional<std::vector<std::string>> texts{};

  bool contains(std::int64_t v) const { return from <= v && v <= to; }
  bool contains(std::string_view text) const;
  bool matches(const Cell& cell) const;  // always true for REAL
  bool any() const { return is_open() && !texts; }
  bool is_open() const {
    return from == std::numeric_limits<std::int64_t>::min() &&
           to == std::numeric_limits<std::int64_t>::max();
  }
};

// The declaration of a column.
struct Field {
  const char* name;
  const char* type;
  Pushdown pushdown;
  const char* name_in_set = nullptr;  // null: `name`
  bool is_text() const { return std::string_view(type).starts_with("TEXT"); }
};

class Conditions {
 public:
  explicit Conditions(std::span<const Field> columns)
      : columns_(columns), constraints_(columns.size()) {}
  const ColumnConstraint& of(std::size_t column) const { return constraints_[column]; }
  // Whether the statement may use the column's value.
  bool uses(std::size_t column) const { return (used_ >> std::min<std::size_t>(column, 63)) & 1; }
  // No row can match.
  bool impossible() const { return impossible_; }

  void narrow(std::size_t column, int op, sqlite3_value* value);
  void use(sqlite3_uint64 columns) { used_ = columns; }
  // Those of the columns after the first one.
  Conditions of_rest() const;

 private:
  std::span<const Field> columns_;
  std::vector<ColumnConstraint> constraints_;
  sqlite3_uint64 used_ = ~sqlite3_uint64{0};
  bool impossible_ = false;
};

// The rows of one scan.
class Cursor {
 public:
  virtual ~Cursor() = default;
  // Moves to the first row, or to the end. May be called again.
  virtual Status start(const Conditions& conditions) = 0;
  virtual Status next() = 0;
  virtual bool at_end() const = 0;
  virtual void value(std::size_t column, Output& out) const = 0;
  // The rowid, independent of the conditions.
  virtual Expected<std::int64_t> row_id() const = 0;
};

// A cursor over rows that are produced in chunks, such as the rows of a step or template. `Row`
// must have a member `row_id`. Filters rows by the conditions on pushed-down columns; a text
// of such a column must live as long as its row.
template <class Row>
class ChunkCursor : public Cursor {
 public:
  explicit ChunkCursor(std::span<const Column<Row>> columns) : columns_(columns) {}
  Status start(const Conditions& conditions) final {
    rows_.clear();
    at_ = 0;
    if (conditions.impossible()) return {};
    filters_.clear();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].pushdown != Pushdown::None && !conditions.of(i).any())
        filters_.emplace_back(i, conditions.of(i));
    }
    if (auto begun = begin(conditions); !begun) return begun;
    return refill();
  }
  Status next() final {
    if (++at_ < rows_.size()) return {};
    return refill();
  }
  bool at_end() const final { return at_ >= rows_.size(); }
  void value(std::size_t column, Output& out) const final {
    columns_[column].value(rows_[at_], out);
  }
  Expected<std::int64_t> row_id() const final { return rows_[at_].row_id; }

 protected:
  virtual Status begin(const Conditions& conditions) = 0;
  // Appends the rows of the next chunk, possibly none; false: no more chunks.
  virtual Expected<bool> next_chunk(std::vector<Row>& rows) = 0;

 private:
  Status refill() {
    at_ = 0;
    do {
      rows_.clear();
      const auto found = next_chunk(rows_);
      if (!found) return std::unexpected(found.error());
      if (!*found) return {};
      if (!filters_.empty()) std::erase_if(rows_, [&](const Row& row) { return !passes(row); });
    } while (rows_.empty());
    return {};
  }
  bool passes(const Row& row) const {
    for (const auto& [column, constraint] : filters_) {
      Cell cell;
      Output out(cell);
      columns_[column].value(row, out);
      if (!constraint.matches(cell)) return false;
    }
    return true;
  }
  std::span<const Column<Row>> columns_;
  std::vector<std::pair<std::size_t, ColumnConstraint>> filters_;
  std::vector<Row> rows_;
  std::size_t at_ = 0;
};

// The declaration of a table.
struct Table {
  const char* name = "";
  double rows = 1;    // estimate for the query planner
  double chunks = 1;  // estimate for the query planner
  // Rows are sorted by this number of leading columns, ascending.
  std::size_t ordered_by = 0;
  std::vector<Field> fields{};
  std::unique_ptr<Cursor> (*open)(SessionSource& source) = nullptr;
};

// `table` with its columns and its cursor.
template <class OfCursor>
Table table_of(Table table, const auto& columns) {
  for (const auto& column : columns)
    table.fields.push_back({column.name, column.type, column.pushdown, column.name_in_set});
  table.open = [](SessionSource& source) -> std::unique_ptr<Cursor> {
    return std::make_unique<OfCursor>(source);
  };
  return table;
}

using columns::column_index;

// Registers `table` with a connection under its own name. `sources` provides the session.
// Returns an SQLite result code.
int add_table(sqlite3* db, Table table, const std::shared_ptr<SessionSources>& sources);
// The same for the rows of all sessions of a set, one session after the other. The first column is
// `session`, the name of the session.
int add_table(sqlite3* db, Table table, const std::shared_ptr<SessionSet>& set);

// The text of a value; empty for NULL. Owned by SQLite, valid until the value is converted to
// another type.
std::string_view text_of(sqlite3_value* value);

}  // namespace tt::sql
