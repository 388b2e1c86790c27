// Columns of a table, defined once for SQL, exports, REST and the documents.
//
// A table is a function that returns a tuple of Columns, for example access_columns(). A column
// has a description (ColumnInfo) and a getter: a generic lambda that returns the value for a
// row. SQL, the exports and REST each have their own type of row, with accessors of the same
// names (listed at the head of each table), and their own output. They instantiate the getters
// with bind(), so that a value is written without a copy or a conversion.
//
// A getter returns the value instead of writing it, so that bind() checks at compile time that
// its type is the declared one and that it returns an optional if, and only if, the column can
// be null. Text that a getter returns as std::string_view or const char* must outlive the
// reading of the row; the output copies a std::string.
//
// tests/analysis/columns/column_docs_test.cpp generates the tables of docs/sql.md and
// docs/exports.md and the schemas of api/openapi.yaml from these definitions.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tt::columns {

enum class Type : std::uint8_t { Text, Flag, Int32, UInt32, Int64, UInt64, Float };

// What the value of a column of accesses depends on. Exports evaluate a column once per step or
// once per access of a template where possible. PerRow: on the row and the tensor's address.
// PerTime: also on the times of the ops.
enum class Varies : std::uint8_t { PerStep, PerAccess, PerRow, PerTime };

// What SQL passes conditions on a column down to.
enum class Pushdown : std::uint8_t {
  None,   // not pushed down
  Rows,   // filters rows within a chunk
  Chunks  // skips complete chunks (steps, templates), and filters rows
};

// The possible values of a text column.
struct Enumeration {
  const char* schema;  // its name in api/openapi.yaml
  int count;
  const char* (*word)(int i);
};

struct ColumnInfo {
  const char* name;
  Type type;
  const char* unit = "";     // "ns", "bytes"
  const char* meaning = "";  // empty if the name says it all
  const char* null = "";     // what a null means; empty: never null
  const Enumeration* words = nullptr;
  Varies varies = Varies::PerRow;
  Pushdown pushdown = Pushdown::None;
  // The former name, which SQL still accepts: a hidden column.
  const char* former_name = nullptr;
  // The same in all rows of a session: hidden in SQL and not part of a REST row.
  bool per_session = false;
  // The name in SQL over several sessions, whose tables have a column `session` of their own.
  const char* name_in_set = nullptr;
  // Of the op of the row, not of the row. An export, in which columns are summed, leaves it out.
  bool of_op = false;
  // For sums over many rows: not part of a REST row.
  bool for_sums = false;

  constexpr bool in_rest() const { return !per_session && !for_sums; }
  constexpr bool nullable() const { return *null != '\0'; }
};

template <class Get>
struct Column {
  ColumnInfo info;
  Get get;
};
template <class Get>
Column(ColumnInfo, Get) -> Column<Get>;

template <class Value>
inline constexpr bool is_optional = false;
template <class Value>
inline constexpr bool is_optional<std::optional<Value>> = true;

// Calls the function of `out` for the type of `value`: null(), flag(), integer(), count() for
// unsigned numbers, real(), text() or text_copy().
template <class Value, class Out>
constexpr void write(const Value& value, Out& out) {
  if constexpr (is_optional<Value>) {
    if (value) {
      write(*value, out);
    } else {
      out.null();
    }
  } else if constexpr (std::same_as<Value, bool>) {
    out.flag(value);
  } else if constexpr (std::floating_point<Value>) {
    out.real(value);
  } else if constexpr (std::unsigned_integral<Value>) {
    out.count(value);
  } else if constexpr (std::signed_integral<Value>) {
    out.integer(value);
  } else if constexpr (std::same_as<Value, std::string>) {
    out.text_copy(value);
  } else {
    out.text(std::string_view(value));
  }
}

template <class Value>
consteval bool has_type(Type type) {
  if constexpr (is_optional<Value>) {
    return has_type<typename Value::value_type>(type);
  } else if constexpr (std::same_as<Value, bool>) {
    return type == Type::Flag;
  } else if constexpr (std::floating_point<Value>) {
    return type == Type::Float && sizeof(Value) == sizeof(float);
  } else if constexpr (std::integral<Value>) {
    const bool is_wide = sizeof(Value) > sizeof(std::uint32_t);
    return type == (std::unsigned_integral<Value> ? (is_wide ? Type::UInt64 : Type::UInt32)
                                                  : (is_wide ? Type::Int64 : Type::Int32));
  } else {
    return type == Type::Text && std::convertible_to<Value, std::string_view>;
  }
}

// An array with `make(info, read)` of every column, where `read(row)` returns the value of
// column `info` for a `Row`.
template <class Row, class Make, class... Gets>
consteval auto map_columns(const std::tuple<Column<Gets>...>& columns, Make make) {
  const auto one = [&]<class Get>(const Column<Get>& column) {
    using Value = std::remove_cvref_t<std::invoke_result_t<Get, const Row&>>;
    if (!has_type<Value>(column.info.type)) throw "the value has not the type of the column";
    if (is_optional<Value> != column.info.nullable()) throw "an optional is a nullable column";
    return make(column.info, column.get);
  };
  return std::apply([&](const auto&... column) { return std::array{one(column)...}; }, columns);
}

// A column that writes its value for a `Row` into an `Out`.
template <class Row, class Out>
struct BoundColumn : ColumnInfo {
  void (*value)(const Row& row, Out& out);
};

template <class Row, class Out, class... Gets>
consteval auto bind(const std::tuple<Column<Gets>...>& columns) {
  return map_columns<Row>(columns, []<class Get>(const ColumnInfo& info, Get) {
    return BoundColumn<Row, Out>{info, [](const Row& row, Out& out) { write(Get{}(row), out); }};
  });
}

// The descriptions alone.
template <class... Gets>
constexpr std::array<ColumnInfo, sizeof...(Gets)> infos_of(
    const std::tuple<Column<Gets>...>& columns) {
  return std::apply([](const auto&... column) { return std::array{column.info...}; }, columns);
}

// A column name as a template argument.
template <std::size_t N>
struct Name {
  char text[N]{};
  consteval Name(const char (&name)[N]) { std::ranges::copy(name, text); }  // NOLINT: implicit
};

// The index of a column; an unknown name is a compile error.
template <class Infos>
consteval std::size_t column_index(const Infos& infos, std::string_view name) {
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (name == infos[i].name) return i;
  throw "no such column";
}

// The columns `names` of a table, for a table that has some columns of another one.
template <auto table, Name... names>
consteval auto pick() {
  constexpr auto columns = table();
  constexpr auto infos = infos_of(columns);
  return std::tuple{std::get<column_index(infos, names.text)>(columns)...};
}

}  // namespace tt::columns
