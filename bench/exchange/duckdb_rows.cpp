#include "bench/exchange/duckdb_rows.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <format>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/sql/query.h"
#include "api/exchange/export.h"
#include "api/exchange/rows/export_columns.h"
#include "tracer/text/join.h"

namespace tt::bench {

namespace {

namespace fs = std::filesystem;
using exchange::access_columns;
using exchange::AccessColumn;
using exchange::CellType;
using Field = std::optional<std::string>;  // nullopt: NULL

// Reads the CSV output of a program. An empty field is NULL, "" is an empty text.
class CsvPipe {
 public:
  explicit CsvPipe(const std::string& command)
      : pipe_(popen(command.c_str(), "r")), buffer_(1 << 20) {}

  bool started() const { return pipe_ != nullptr; }
  std::uint64_t bytes() const { return bytes_; }
  // Reads the next row into `row`, reusing its strings. False at the end.
  bool next(std::vector<Field>& row) {
    std::size_t i = 0;
    if (peek() == EOF) return false;
    for (bool more = true; more; ++i) {
      if (row.size() <= i) row.emplace_back();
      more = field(row[i]);
    }
    row.resize(i);
    return true;
  }
  bool exited_with_zero() { return pclose(pipe_.release()) == 0; }

 private:
  struct Close {
    void operator()(FILE* pipe) const noexcept { pclose(pipe); }
  };
  int peek() {
    if (at_ == end_) {
      end_ = fread(buffer_.data(), 1, buffer_.size(), pipe_.get());
      at_ = 0;
      bytes_ += end_;
      if (end_ == 0) return EOF;
    }
    return static_cast<unsigned char>(buffer_[at_]);
  }
  int take() {
    const int c = peek();
    if (c != EOF) ++at_;
    return c;
  }
  // Reads one field. True if another field of the row follows.
  bool field(Field& out) {
    const bool quoted = peek() == '"';
    if (out) {
      out->clear();
    } else {
      out.emplace();
    }
    if (quoted) {
      take();
      for (int c = take(); c != EOF; c = take()) {
        if (c == '"') {
          if (peek() != '"') break;
          take();
        }
        *out += static_cast<char>(c);
      }
    }
    int c = take();
    for (; c != ',' && c != '\n' && c != EOF; c = take()) *out += static_cast<char>(c);
    if (!quoted && out->empty()) out.reset();
    return c == ',';
  }

  std::unique_ptr<FILE, Close> pipe_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t bytes_ = 0;
};

// Whether a value of our SQL equals DuckDB's. Our SQL has UInt64 values above 2^63 - 1 as
// negative numbers.
bool same(const sql::QueryValue& ours, const Field& theirs, CellType type) {
  if (std::holds_alternative<std::monostate>(ours)) return !theirs;
  if (!theirs) return false;
  const char *begin = theirs->data(), *end = begin + theirs->size();
  const auto is = [&](auto number) {
    decltype(number) read{};
    const auto parsed = std::from_chars(begin, end, read);
    return parsed.ec == std::errc{} && parsed.ptr == end && read == number;
  };
  if (const auto* number = std::get_if<std::int64_t>(&ours))
    return type == CellType::UInt64 ? is(static_cast<std::uint64_t>(*number)) : is(*number);
  if (const auto* real = std::get_if<double>(&ours)) return is(*real);
  if (const auto* text = std::get_if<std::string_view>(&ours)) return *text == *theirs;
  return false;
}

std::string text_of(const sql::QueryValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* real = std::get_if<double>(&value)) return std::format("{}", *real);
  if (const auto* text = std::get_if<std::string_view>(&value)) return std::string(*text);
  return "NULL";
}

// Column list for DuckDB, with types as in SQLite: flags as integers, floats as doubles.
std::string columns_for_duckdb() {
  std::string list;
  for (const AccessColumn& column : access_columns()) {
    if (!list.empty()) list += ", ";
    list += column.name;
    if (column.type == CellType::Flag) list += "::INTEGER";
    if (column.type == CellType::Float) list += "::DOUBLE";
  }
  return list;
}

std::expected<void, TraceError> write_parquet(const fs::path& session, const fs::path& parquet) {
  const auto reader = SessionReader::open(session);
  if (!reader) return std::unexpected(reader.error());
  auto file = exchange::OutputFile::create(parquet);
  if (!file) return std::unexpected(file.error());
  return exchange::export_session(*reader, {.format = exchange::Format::Parquet}, file->sink())
      .and_then([&] { return file->commit(); });
}

}  // namespace

std::expected<RowAgreement, std::string> compare_with_duckdb(const fs::path& session,
                                                             const fs::path& folder) {
  const fs::path parquet = folder / "duckdb_rows.parquet";
  const struct Remove {
    const fs::path& path;
    ~Remove() {
      std::error_code none;
      fs::remove(path, none);
    }
  } remove{parquet};
  if (auto written = write_parquet(session, parquet); !written)
    return std::unexpected(written.error().message);

  const auto columns = access_columns();
  const std::string names = join(columns, &AccessColumn::name);
  auto reader = SessionReader::open(session);
  if (!reader) return std::unexpected(reader.error().message);
  auto query = sql::Query::prepare(*std::move(reader),
                                   "SELECT " + names + " FROM access ORDER BY step, op, access");
  if (!query) return std::unexpected(query.error().message);
  // DuckDB returns the rows in file order.
  CsvPipe duckdb(
      std::format("duckdb -bail -c \"COPY (SELECT {} FROM '{}') TO '/dev/stdout' "
                  "(FORMAT csv, HEADER false)\"",
                  columns_for_duckdb(), parquet.string()));
  if (!duckdb.started()) return std::unexpected("duckdb cannot be started");

  RowAgreement found{.columns = columns.size()};
  std::vector<Field> theirs;
  const auto differs = [&](const std::string& how) {
    found.difference = std::format("row {}: {}", found.rows, how);
    found.bytes = duckdb.bytes();
    return found;
  };
  while (true) {
    const auto ours = query->next();
    if (!ours) return std::unexpected(ours.error().message);
    const bool more = duckdb.next(theirs);
    if (*ours == nullptr && !more) break;
    if (*ours == nullptr) return differs("we have no more rows, DuckDB has");
    if (!more) return differs("DuckDB has no more rows, we have");
    if (theirs.size() != columns.size())
      return differs(std::format("DuckDB has {} columns", theirs.size()));
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (same((**ours)[i], theirs[i], columns[i].type)) continue;
      return differs(std::format("{}: ours {}, DuckDB's {}", columns[i].name, text_of((**ours)[i]),
                                 theirs[i].value_or("NULL")));
    }
    ++found.rows;
  }
  found.bytes = duckdb.bytes();
  if (!duckdb.exited_with_zero()) return std::unexpected("duckdb failed");
  return found;
}

}  // namespace tt::bench
