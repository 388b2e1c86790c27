// SQL over several sessions at once.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <format>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/sql/query.h"
#include "analysis/sql/trace_tables.h"
#include "tests/analysis/sql/sql_check.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;
using test::small_step;
using test::SmallSession;
using test::SqlSession;

struct CloseDatabase {
  void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

Database memory_database() {
  sqlite3* made = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &made), SQLITE_OK);
  return Database(made);
}

Lines run(sqlite3* db, const std::string& sql) {
  Lines lines;
  char* error = nullptr;
  const auto add = [](void* all, int columns, char** values, char**) {
    std::string line;
    for (int i = 0; i < columns; ++i)
      line += (i == 0 ? "" : "|") + std::string(values[i] != nullptr ? values[i] : "NULL");
    static_cast<Lines*>(all)->push_back(std::move(line));
    return 0;
  };
  sqlite3_exec(db, sql.c_str(), add, &lines, &error);
  if (error != nullptr) lines = {"error: " + std::string(error)};
  sqlite3_free(error);
  return lines;
}

std::string columns_of(sqlite3* db, const std::string& table) {
  sqlite3_stmt* made = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(db, ("SELECT * FROM " + table).c_str(), -1, &made, nullptr),
            SQLITE_OK);
  std::string columns;
  for (int i = 0; i < sqlite3_column_count(made); ++i)
    columns += (i == 0 ? "" : ", ") + std::string(sqlite3_column_name(made, i));
  sqlite3_finalize(made);
  return columns;
}

Lines sorted(Lines lines) {
  std::ranges::sort(lines);
  return lines;
}

// More sessions than are open at a time.
struct RandomSet {
  RandomSet() {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      names.push_back(std::format("run {:02}", seed));
      const fs::path path = folder.path() / (names.back() + ".ttrace");
      EXPECT_TRUE(test::write_session(path, test::random_session(seed)).has_value());
      paths.push_back(path);
    }
    EXPECT_EQ(sql::add_trace_tables(db.get(),
                                    std::make_shared<sql::SessionSet>(sessions(), never_cancel, 4)),
              SQLITE_OK);
  }
  sql::SessionNames sessions() const {
    return {.names = names,
            .open = [paths = paths](std::size_t i) { return SessionReader::open(paths[i]); }};
  }
  test::TempFolder folder;
  std::vector<std::string> names;
  std::vector<fs::path> paths;
  Database db = memory_database();
};

TEST(SessionSet, HasTheRowsOfEverySession) {
  const RandomSet set;
  std::size_t compared = 0;
  for (const auto& list : {sql::trace_table_names(), sql::trace_view_names()}) {
    for (const std::string_view table : list) {
      SCOPED_TRACE(table);
      Lines expected;
      bool overflow = false;  // a random file may contain numbers whose sum SQLite refuses
      for (std::size_t i = 0; i < set.names.size(); ++i) {
        const SqlSession one(set.paths[i]);
        for (const std::string& line : run(one.get(), std::format("SELECT * FROM {}", table))) {
          overflow = overflow || line.contains("integer overflow");
          expected.push_back(set.names[i] + "|" + line);
        }
      }
      if (overflow) continue;
      EXPECT_EQ(sorted(run(set.db.get(), std::format("SELECT * FROM {}", table))),
                sorted(expected));
      compared += expected.size();
    }
  }
  EXPECT_GT(compared, 2'500u);
}

// The same statements over ordinary tables with the same rows.
TEST(SessionSet, AnswersAsOrdinaryTablesDo) {
  const RandomSet set;
  const Database plain = memory_database();
  for (const std::string table : {"step", "op", "access", "token", "template", "tensor"}) {
    const std::string columns = columns_of(set.db.get(), table);
    ASSERT_TRUE(columns.starts_with("session, ")) << columns;
    run(plain.get(), std::format("CREATE TABLE {} ({})", table, columns));
    sqlite3_stmt *read = nullptr, *write = nullptr;
    ASSERT_EQ(
        sqlite3_prepare_v2(set.db.get(), std::format("SELECT {} FROM {}", columns, table).c_str(),
                           -1, &read, nullptr),
        SQLITE_OK);
    const int count = sqlite3_column_count(read);
    std::string marks = "?";
    for (int i = 1; i < count; ++i) marks += ", ?";
    ASSERT_EQ(sqlite3_prepare_v2(plain.get(),
                                 std::format("INSERT INTO {} VALUES ({})", table, marks).c_str(),
                                 -1, &write, nullptr),
              SQLITE_OK);
    run(plain.get(), "BEGIN");
    while (sqlite3_step(read) == SQLITE_ROW) {
      for (int i = 0; i < count; ++i)
        sqlite3_bind_value(write, i + 1, sqlite3_column_value(read, i));
      EXPECT_EQ(sqlite3_step(write), SQLITE_DONE);
      sqlite3_reset(write);
    }
    run(plain.get(), "COMMIT");
    sqlite3_finalize(read);
    sqlite3_finalize(write);
  }
  const std::array statements = {
      "SELECT * FROM step WHERE session = 'run 03' AND step < 5",
      "SELECT session, step FROM step WHERE session IN ('run 05', 'run 02', 'none') AND phase = "
      "'generate'",
      "SELECT session, step, op FROM op WHERE step = 1 OR step = 3 OR session = 'run 04'",
      "SELECT session, tensor_name, count(*) FROM access WHERE layer_id = 1 OR step = 2 GROUP BY "
      "session, tensor_name",
      "SELECT s.session, s.step, count(*) FROM step s JOIN op o ON o.session = s.session AND "
      "o.step = s.step GROUP BY s.session, s.step",
      "SELECT a.session, b.session, count(*) FROM step a JOIN step b ON a.step = b.step AND "
      "a.session < b.session GROUP BY a.session, b.session",
      "SELECT t.session, t.text FROM token t WHERE t.session > 'run 03' OR t.token_id = 0",
      "SELECT DISTINCT session, template FROM template WHERE session <> 'run 05'",
      "SELECT session, max(step) FROM step GROUP BY session ORDER BY session DESC",
      "SELECT x.session, n.tensor_name FROM tensor n JOIN template x USING (session, template) "
      "WHERE n.tensor = 3",
  };
  std::size_t rows = 0;
  for (const std::string sql : statements) {
    const Lines expected = sorted(run(plain.get(), sql));
    EXPECT_EQ(sorted(run(set.db.get(), sql)), expected) << sql;
    rows += expected.size();
  }
  EXPECT_GT(rows, 300u);
  // The order of the rows, where no sorting is needed.
  for (const std::string sql : {"SELECT session, step FROM step ORDER BY session, step",
                                "SELECT session, step, op FROM op ORDER BY session, step, op",
                                "SELECT session, name FROM metadata ORDER BY session"}) {
    const Lines lines = run(set.db.get(), sql);
    EXPECT_TRUE(run(set.db.get(), "EXPLAIN QUERY PLAN " + sql).size() == 1) << "sorts: " << sql;
    EXPECT_TRUE(std::ranges::is_sorted(
        lines, {}, [](const std::string& line) { return line.substr(0, line.find('|')); }));
  }
}

TEST(SessionSet, OpensNoSessionThatTheStatementExcludes) {
  const SmallSession small({small_step(0), small_step(1)});
  std::vector<std::size_t> opened;
  const sql::SessionNames sessions{.names = {"a", "b", "c"}, .open = [&](std::size_t i) {
                                     opened.push_back(i);
                                     return SessionReader::open(small.path);
                                   }};
  auto query = sql::Query::prepare(sessions, "SELECT count(*) FROM step WHERE session = 'b'");
  ASSERT_TRUE(query.has_value()) << query.error().message;
  const auto row = query->next();
  ASSERT_TRUE(row.has_value() && *row != nullptr);
  EXPECT_EQ(std::get<std::int64_t>((**row)[0]), 2);
  EXPECT_EQ(opened, std::vector<std::size_t>{1});
}

TEST(SessionSet, NamesTheSessionThatCannotBeRead) {
  const SmallSession small({small_step(0), small_step(1)});
  const sql::SessionNames sessions{
      .names = {"good", "lost"}, .open = [&](std::size_t i) {
        return SessionReader::open(i == 0 ? small.path : small.path.parent_path() / "lost.ttrace");
      }};
  auto query = sql::Query::prepare(sessions, "SELECT session, step FROM step");
  ASSERT_TRUE(query.has_value()) << query.error().message;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(query->next().has_value());
  const auto row = query->next();
  ASSERT_FALSE(row.has_value());
  EXPECT_TRUE(row.error().message.starts_with("Session lost: ")) << row.error().message;
}

}  // namespace
}  // namespace tt
