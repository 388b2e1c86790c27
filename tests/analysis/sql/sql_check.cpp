#include "tests/analysis/sql/sql_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <format>
#include <variant>

#include "analysis/sql/trace_tables.h"
#include "tests/analysis/sql/naive_tables.h"
#include "tests/analysis/sql/naive_views.h"
#include "tests/support/sessions/random_session.h"

namespace tt::test {
namespace {

std::string text_at(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return "NULL";
    case SQLITE_FLOAT:
      return std::format("{:.17g}", sqlite3_column_double(statement, column));
    default: {
      const auto* text = static_cast<const char*>(sqlite3_column_blob(statement, column));
      return text == nullptr
                 ? std::string()
                 : std::string(text,
                               static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
    }
  }
}

using Value = std::variant<std::monostate, std::int64_t, double, std::string>;

Value value_at(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return std::monostate{};
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    default:
      return text_at(statement, column);
  }
}

void bind(sqlite3_stmt* statement, int at, const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    sqlite3_bind_int64(statement, at, *number);
  } else if (const auto* real = std::get_if<double>(&value)) {
    sqlite3_bind_double(statement, at, *real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    sqlite3_bind_text64(statement, at, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
}

struct Finalize {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Lines run(sqlite3* db, const std::string& sql, const std::vector<Value>& values) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(db, sql.c_str(), -1, &made, nullptr) != SQLITE_OK)
    return {sqlite3_errmsg(db)};
  const Statement statement(made);
  for (std::size_t i = 0; i < values.size(); ++i) bind(made, static_cast<int>(i) + 1, values[i]);
  Lines lines;
  int code = 0;
  while ((code = sqlite3_step(made)) == SQLITE_ROW) {
    std::string line;
    for (int i = 0; i < sqlite3_column_count(made); ++i)
      line += (i == 0 ? "" : "|") + text_at(made, i);
    lines.push_back(std::move(line));
  }
  if (code != SQLITE_DONE) return {sqlite3_errmsg(db)};
  return lines;
}

// A table's columns and some sample rows.
struct Sample {
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
};

Sample sample_of(sqlite3* db, const std::string& table, Dice& dice) {
  sqlite3_stmt* made = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(db, ("SELECT * FROM " + table).c_str(), -1, &made, nullptr),
            SQLITE_OK);
  const Statement statement(made);
  Sample sample;
  for (int i = 0; i < sqlite3_column_count(made); ++i)
    sample.columns.emplace_back(sqlite3_column_name(made, i));
  std::uint64_t seen = 0;
  while (sqlite3_step(made) == SQLITE_ROW) {
    ++seen;
    if (sample.rows.size() >= 40 && !dice.one_in(seen / 20 + 1)) continue;
    std::vector<Value> row;
    for (int i = 0; i < sqlite3_column_count(made); ++i) row.push_back(value_at(made, i));
    if (sample.rows.size() < 40) {
      sample.rows.push_back(std::move(row));
    } else {
      sample.rows[dice.below(40)] = std::move(row);
    }
  }
  return sample;
}

// A value related to `value`: equal, close to it, or of another type.
Value related_value(const Value& value, Dice& dice) {
  if (dice.one_in(25)) return std::monostate{};
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    switch (dice.below(12)) {
      case 0:
        return static_cast<double>(*number) + 0.5;
      case 1:
        return static_cast<double>(*number);
      case 2:
        return std::to_string(*number);
      case 3:
        return dice.any_i64();
      case 4:
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(*number) + dice.below(5) - 2);
      case 5:
        return dice.one_in(2) ? 1e300 : -1e300;
      default:
        return *number;
    }
  }
  if (std::holds_alternative<std::string>(value) && dice.one_in(10)) return dice.any_i64();
  return value;
}

struct Condition {
  std::string text;
  std::vector<Value> values;
};

Condition random_condition(const Sample& sample, Dice& dice) {
  Condition made;
  const auto parameter = [&](std::size_t column) {
    made.values.push_back(
        sample.rows.empty()
            ? Value(dice.any_i64())
            : related_value(sample.rows[dice.below(sample.rows.size())][column], dice));
    return "?" + std::to_string(made.values.size());
  };
  for (std::uint64_t terms = 1 + dice.below(3); terms > 0; --terms) {
    // Prefer the first columns: they are the most selective.
    const std::size_t column = dice.below(
        dice.one_in(2) ? std::min<std::size_t>(5, sample.columns.size()) : sample.columns.size());
    const std::string& name = sample.columns[column];
    made.text += made.text.empty() ? "" : dice.one_in(8) ? " OR " : " AND ";
    static constexpr const char* kSigns[] = {"=", "=", "<", "<=", ">", ">=", "<>", "IS"};
    switch (dice.below(8)) {
      case 0: {
        const std::string low = parameter(column), high = parameter(column);
        made.text += std::format("\"{}\" BETWEEN {} AND {}", name, low, high);
        break;
      }
      case 1: {
        const std::string a = parameter(column), b = parameter(column), c = parameter(column);
        made.text += std::format("\"{}\" IN ({}, {}, {})", name, a, b, c);
        break;
      }
      case 2:
        made.text += std::format("\"{}\" IS {}NULL", name, dice.one_in(2) ? "NOT " : "");
        break;
      default: {
        const char* sign = kSigns[dice.below(std::size(kSigns))];
        made.text += std::format("\"{}\" {} {}", name, sign, parameter(column));
      }
    }
  }
  return made;
}

// Compares two rows. A REAL that is no whole number may differ in its last digits, because SQLite
// adds in a different order.
bool same_row(const std::string& found, const std::string& naive) {
  if (found == naive) return true;
  std::istringstream left(found), right(naive);
  std::string a, b;
  while (std::getline(left, a, '|')) {
    if (!std::getline(right, b, '|')) return false;
    if (a == b) continue;
    const double x = std::strtod(a.c_str(), nullptr), y = std::strtod(b.c_str(), nullptr);
    if (x == std::floor(x) || std::abs(x - y) > 1e-12 * std::abs(y)) return false;
  }
  return !std::getline(right, b, '|');
}

std::uint64_t expect_view(const SqlSession& session, const std::string& view, Lines naive) {
  SCOPED_TRACE(view);
  Lines found = session.rows("SELECT * FROM " + view);
  std::ranges::sort(found);
  std::ranges::sort(naive);
  EXPECT_EQ(found.size(), naive.size()) << (found.empty() ? "" : found[0]);
  for (std::size_t i = 0; i < std::min(found.size(), naive.size()); ++i) {
    if (same_row(found[i], naive[i])) continue;
    ADD_FAILURE() << "row " << i << "\n  found " << found[i] << "\n  naive " << naive[i];
    break;
  }
  return found.size();
}

}  // namespace

SqlSession::SqlSession(const std::filesystem::path& file) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
  db_.reset(db);
  const auto source = std::make_shared<sql::SessionSource>(file);
  EXPECT_EQ(sql::add_trace_tables(db, std::make_shared<sql::SingleSession>(source)), SQLITE_OK)
      << sqlite3_errmsg(db);
}

std::vector<std::string> SqlSession::rows(const std::string& sql) const {
  return run(db_.get(), sql, {});
}

std::uint64_t expect_tables(const std::filesystem::path& file) {
  const SessionContents all(file);
  const SqlSession session(file);
  std::uint64_t compared = 0;
  const auto expect = [&](const std::string& table, const Lines& naive) {
    SCOPED_TRACE(table);
    const Lines found = session.rows("SELECT * FROM " + table);
    EXPECT_EQ(found.size(), naive.size()) << (found.empty() ? "" : found[0]);
    for (std::size_t i = 0; i < std::min(found.size(), naive.size()); ++i) {
      if (found[i] == naive[i]) continue;
      ADD_FAILURE() << "row " << i << "\n  found " << found[i] << "\n  naive " << naive[i];
      return;
    }
    // Row ids increase.
    EXPECT_EQ(session.rows("SELECT count(*) FROM (SELECT rowid AS r, lag(rowid) OVER () AS before "
                           "FROM " +
                           table + ") WHERE r <= before"),
              Lines{"0"});
    compared += found.size();
  };
  for (const NaiveTable& table : naive_tables()) expect(table.name, table.rows(all));
  return compared;
}

std::uint64_t expect_views(const std::filesystem::path& file) {
  const SessionContents all(file);
  const SqlSession session(file);
  std::uint64_t compared = 0;
  for (const NaiveView& view : naive_views()) {
    const auto naive = view.rows(all);
    if (!naive) continue;
    compared += expect_view(session, view.name, *naive);
    if (std::string_view(view.name) != "hottest_tensors") continue;
    EXPECT_EQ(session.rows("SELECT count(*) FROM (SELECT size_bytes AS b, lag(size_bytes) OVER () "
                           "AS before FROM hottest_tensors) WHERE b > before"),
              Lines{"0"});
  }
  return compared;
}

std::uint64_t expect_pushed_down(const std::filesystem::path& file, std::uint64_t seed,
                                 int condition_count) {
  Dice dice(seed);
  const SqlSession session(file);
  std::uint64_t found_rows = 0;
  for (const std::string_view table : sql::trace_table_names()) {
    SCOPED_TRACE(table);
    const Sample sample = sample_of(session.get(), std::string(table), dice);
    for (int i = 0; i < condition_count; ++i) {
      const Condition where = random_condition(sample, dice);
      SCOPED_TRACE(where.text);
      const Lines found =
          run(session.get(), std::format("SELECT rowid, * FROM {} WHERE {}", table, where.text),
              where.values);
      // MATERIALIZED prevents pushdown into the subquery.
      const Lines naive =
          run(session.get(),
              std::format("WITH whole AS MATERIALIZED (SELECT rowid AS number_, * FROM "
                          "{}) SELECT * FROM whole WHERE {} ORDER BY number_",
                          table, where.text),
              where.values);
      Lines sorted = found;
      if (where.text.contains(" OR ")) {
        sorted =
            run(session.get(),
                std::format("SELECT rowid, * FROM {} WHERE {} ORDER BY rowid", table, where.text),
                where.values);
      }
      EXPECT_EQ(sorted, naive);
      found_rows += found.size();
      if (::testing::Test::HasFailure()) return found_rows;
    }
  }
  return found_rows;
}

}  // namespace tt::test
