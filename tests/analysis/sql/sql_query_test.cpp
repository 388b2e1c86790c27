// One SQL statement over a session: allowed statements and limits.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <format>
#include <optional>
#include <string>

#include "analysis/sql/query.h"
#include "tests/support/sessions/small_session.h"

namespace tt {
namespace {

using namespace std::chrono_literals;
using sql::Query;
using sql::QueryError;
using test::small_step;
using test::SmallSession;

// Limits as in the server, with a timeout suited to slow machines.
constexpr sql::QueryLimits kLimits{
    .time = 5s, .rows = 1000, .memory = 64 << 20, .bounded_values = true};

std::vector<Step> steps(std::uint32_t count) {
  std::vector<Step> out;
  for (std::uint32_t i = 0; i < count; ++i) out.push_back(small_step(i));
  return out;
}

struct QueryResult {
  std::uint64_t rows = 0;
  bool truncated = false;
  std::optional<QueryError> error;
};

QueryResult run(const SmallSession& session, std::string_view statement,
                const sql::QueryLimits& limits = kLimits, ContinueCheck keep_going = never_cancel) {
  QueryResult ran;
  auto query = Query::prepare(session.reader(), statement, limits, std::move(keep_going));
  if (!query) {
    ran.error = query.error();
    return ran;
  }
  while (true) {
    const auto row = query->next();
    if (!row) ran.error = row.error();
    if (!row || *row == nullptr) break;
    ++ran.rows;
  }
  ran.truncated = query->truncated();
  return ran;
}

TEST(SqlQuery, ReturnsColumnsAndTypedValues) {
  const SmallSession session(steps(2));
  auto query = Query::prepare(session.reader(),
                              "SELECT step, 1.5 AS half, tensor_name, NULL, x'00ff' FROM access "
                              "WHERE step = 1 LIMIT 1;  -- and no more",
                              kLimits);
  ASSERT_TRUE(query.has_value()) << query.error().message;
  EXPECT_EQ(query->columns(),
            (std::vector<std::string>{"step", "half", "tensor_name", "NULL", "x'00ff'"}));
  const auto row = query->next();
  ASSERT_TRUE(row.has_value() && *row != nullptr);
  EXPECT_EQ(std::get<std::int64_t>((**row)[0]), 1);
  EXPECT_EQ(std::get<double>((**row)[1]), 1.5);
  EXPECT_EQ(std::get<std::string_view>((**row)[2]), "token_embd.weight");
  EXPECT_TRUE(std::holds_alternative<std::monostate>((**row)[3]));
  EXPECT_EQ(std::get<std::span<const std::byte>>((**row)[4]).size(), 2u);
  EXPECT_EQ(query->next().value(), nullptr);
  EXPECT_EQ(query->next().value(), nullptr);
}

TEST(SqlQuery, ReportsSyntaxErrorsWithOffset) {
  const SmallSession session(steps(1));
  const QueryResult ran = run(session, "SELECT step FROM access WHERE nonsense = 3");
  ASSERT_TRUE(ran.error.has_value());
  EXPECT_EQ(ran.error->kind, QueryError::Kind::Invalid);
  EXPECT_EQ(ran.error->offset, 30u);
  EXPECT_TRUE(ran.error->message.contains("nonsense")) << ran.error->message;
  EXPECT_EQ(run(session, "").error->kind, QueryError::Kind::Invalid);
  EXPECT_EQ(run(session, " -- nothing").error->kind, QueryError::Kind::Invalid);
  EXPECT_EQ(run(session, std::string_view("SELECT 1\0", 9)).error->kind, QueryError::Kind::Invalid);
}

// '^' marks the expected error offset and is removed from the statement.
TEST(SqlQuery, ReportsOffsetOfUnknownAndForbiddenNames) {
  using enum QueryError::Kind;
  struct Case {
    QueryError::Kind kind;
    std::string marked;
  };
  const SmallSession session(steps(1));
  for (const auto& [kind, marked] : {
           Case{Invalid, "SELECT * FROM ^acces"},
           Case{Invalid, "SELECT 'acces', acces FROM ^ACCES -- acces"},
           Case{Invalid, "SELECT (SELECT 1 FROM step), acces\nFROM /* acces */ ^\"acces\""},
           Case{Invalid, "SELECT step FROM step a, ^acces b WHERE b.step"},
           Case{Invalid, "SELECT x'aa' FROM step LEFT JOIN main.^x"},
           Case{Invalid, "SELECT step FROM 'acces'"},
           Case{Invalid, "SELECT * FROM ^tt_step"},
           Case{Invalid, "SELECT 1, ^nothing(2) FROM access"},
           Case{Invalid, "SELECT step FROM access WHERE ^nothing"},
           Case{Invalid, "SELECT ^FROM access"},
           Case{NotAllowed, "SELECT ^load_extension('load_extension')"},
           Case{NotAllowed, "SELECT value FROM ^json_each('[1]')"},
           Case{NotAllowed, "SELECT count(*) FROM ^pragma_database_list"},
           Case{NotAllowed, "SELECT * FROM ^sqlite_schema"},
           Case{NotAllowed, "^ATTACH '/etc/passwd' AS p"},
           Case{NotAllowed, "-- ATTACH\n ^pragma database_list"},
           Case{NotAllowed, " ^INSERT INTO access(step) VALUES (1)"},
           Case{NotAllowed, "^CREATE TEMP VIEW v AS SELECT 1"},
           Case{NotAllowed, "WITH n AS (SELECT 1) ^DELETE FROM token"},
           Case{NotAllowed, "^BEGIN"},
           Case{NotAllowed, "^VACUUM"},
           Case{NotAllowed, "SELECT 1;^ SELECT 2"},
           Case{TooLarge, "SELECT length(zeroblob(1000000000))"},
       }) {
    SCOPED_TRACE(marked);
    std::string statement = marked;
    std::optional<std::uint32_t> offset;
    if (const std::size_t mark = statement.find('^'); mark != std::string::npos) {
      statement.erase(mark, 1);
      offset = static_cast<std::uint32_t>(mark);
    }
    const QueryResult ran = run(session, statement);
    ASSERT_TRUE(ran.error.has_value());
    EXPECT_EQ(ran.error->kind, kind) << ran.error->message;
    EXPECT_EQ(ran.error->offset, offset) << ran.error->message;
  }
}

TEST(SqlQuery, RejectsStatementsThatAreNotReadOnly) {
  const SmallSession session(steps(3));
  for (const char* statement : {
           "ATTACH '/etc/passwd' AS p",
           "ATTACH 'file:/tmp/new?mode=rwc' AS p",
           "DETACH main",
           "PRAGMA database_list",
           "PRAGMA writable_schema = 1",
           "PRAGMA temp_store_directory = '/tmp'",
           "SELECT * FROM pragma_database_list",
           "SELECT count(*) FROM pragma_database_list",
           "SELECT count(*) FROM sqlite_schema",
           "SELECT json_each.value FROM json_each('[1]')",
           "SELECT load_extension('/tmp/x.so')",
           "SELECT * FROM sqlite_schema",
           "SELECT * FROM sqlite_temp_schema",
           "SELECT * FROM sqlite_dbpage",
           "SELECT * FROM dbstat",
           "SELECT * FROM tt_step",
           "SELECT writefile('/tmp/x', 'y')",
           "SELECT readfile('/etc/passwd')",
           "SELECT fts3_tokenizer('simple')",
           "SELECT sqlite_compileoption_get(1)",
           "CREATE TABLE t(a)",
           "CREATE TEMP TABLE t(a)",
           "CREATE VIRTUAL TABLE temp.x USING access(main)",
           "CREATE VIRTUAL TABLE t USING fts5(a)",
           "CREATE TEMP VIEW v AS SELECT 1",
           "DROP VIEW phase_totals",
           "INSERT INTO access(step) VALUES (1)",
           "UPDATE step SET step = 1",
           "DELETE FROM token",
           "VACUUM INTO '/tmp/copy'",
           "REINDEX",
           "ANALYZE",
           "BEGIN",
           "SAVEPOINT s",
           "ALTER TABLE token RENAME TO t",
           "SELECT 1; SELECT 2",
           "SELECT 1; ATTACH 'x' AS y",
       }) {
    SCOPED_TRACE(statement);
    const QueryResult ran = run(session, statement);
    ASSERT_TRUE(ran.error.has_value());
    EXPECT_TRUE(ran.error->kind == QueryError::Kind::NotAllowed ||
                ran.error->kind == QueryError::Kind::Invalid)
        << ran.error->message;
    EXPECT_EQ(ran.rows, 0u);
  }
}

// A single uninterruptible function call must be short; the time limit stops all others.
TEST(SqlQuery, StopsExpensiveStatements) {
  const SmallSession session(steps(50));
  const std::string most = std::to_string(sql::kMaxValueBytes - 100);
  const std::string a = "replace(hex(zeroblob(" + most + "/2)), '0', 'a')";
  for (const std::string& statement : {
           std::string("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                       "SELECT count(*) FROM n"),
           std::string("WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n) "
                       "SELECT max(i) FROM n"),
           std::string("WITH RECURSIVE n(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM n) "
                       "SELECT length(s) FROM n"),
           std::string("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n), "
                       "m AS MATERIALIZED (SELECT i, randomblob(1000) AS b FROM n) "
                       "SELECT count(*) FROM m"),
           std::string("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                       "SELECT i FROM n ORDER BY i DESC LIMIT 100000000"),
           std::string("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                       "SELECT median(i) FROM n"),
           std::string("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                       "SELECT count(DISTINCT i) FROM n"),
           std::string("SELECT count(*) FROM access a, access b, access c, access d, access e"),
           std::string("SELECT length(zeroblob(1000000000))"),
           std::string("SELECT length(randomblob(2000000000))"),
           std::string("SELECT length(printf('%2000000000d', 1))"),
           std::string("SELECT length(printf('%.*c', 2000000000, 'x'))"),
           std::string("SELECT length(replace(hex(zeroblob(1000)), '0', hex(zeroblob(100000))))"),
           std::string("SELECT group_concat(hex(zeroblob(1000))) FROM access"),
           std::string("SELECT json_group_array(hex(zeroblob(1000))) FROM access"),
           "WITH v(s) AS MATERIALIZED (SELECT " + a +
               "), RECURSIVE_N(i) AS (SELECT 1) "
               "SELECT sum(s LIKE '%a%a%a%a%a%a%a%a%a%a%a%b') FROM v, access x, access y",
           "WITH v(s) AS MATERIALIZED (SELECT " + a +
               ") "
               "SELECT sum(instr(s, substr(s, 1, 900) || 'b')) FROM v, access x, access y",
           "WITH v(s) AS MATERIALIZED (SELECT " + a +
               ") SELECT instr(s, substr(s, 2) || 'b') FROM v",
           "WITH v(s) AS MATERIALIZED (SELECT " + a + ") SELECT trim(s, s) FROM v",
           "WITH v(s) AS MATERIALIZED (SELECT " + a +
               ") SELECT replace(s, substr(s, 2), '') FROM v",
       }) {
    SCOPED_TRACE(statement.substr(0, 200));
    const auto began = std::chrono::steady_clock::now();
    const QueryResult ran = run(
        session, statement, {.time = 1s, .rows = 1000, .memory = 64 << 20, .bounded_values = true});
    // 20 times the limit of 1 s plus a few hundred milliseconds for one function call.
    EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
    ASSERT_TRUE(ran.error.has_value());
    EXPECT_TRUE(ran.error->kind == QueryError::Kind::Timeout ||
                ran.error->kind == QueryError::Kind::TooLarge ||
                ran.error->message.contains("1000 bytes"))
        << ran.error->message;
  }
}

// Sets one limit only: statements that use unbounded memory, and statements that run without
// end in little memory.
TEST(SqlQuery, EachLimitAppliesIndependently) {
  const SmallSession session(steps(50));
  const std::string numbers =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000000) ";
  for (const std::string statement :
       {"SELECT i FROM n ORDER BY i DESC", "SELECT count(DISTINCT i) FROM n",
        "SELECT median(i) FROM n", "SELECT count(*) FROM (SELECT i, count(*) FROM n GROUP BY i)",
        "SELECT max(length(b)) FROM (SELECT randomblob(1000) AS b FROM n ORDER BY b)"}) {
    SCOPED_TRACE(statement);
    const QueryResult ran = run(session, numbers + statement, {.memory = 16 << 20});
    ASSERT_TRUE(ran.error.has_value());
    EXPECT_EQ(ran.error->kind, QueryError::Kind::TooLarge) << ran.error->message;
    EXPECT_EQ(ran.rows, 0u);
  }
  const std::string endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) ";
  for (const std::string& statement :
       {endless + "SELECT count(*) FROM n", endless + "SELECT sum(length(hex(i))) FROM n",
        std::string("SELECT count(*) FROM access a, access b, access c, access d")}) {
    SCOPED_TRACE(statement);
    const QueryResult ran = run(session, statement, {.time = 300ms});
    ASSERT_TRUE(ran.error.has_value());
    EXPECT_EQ(ran.error->kind, QueryError::Kind::Timeout) << ran.error->message;
  }
}

TEST(SqlQuery, RejectsTooLongAndTooDeepStatements) {
  const SmallSession session(steps(1));
  std::string deep, wide = "SELECT 1", unions = "SELECT 1", tables = "SELECT count(*) FROM access";
  for (int i = 0; i < 20'000; ++i) deep += "(";
  for (int i = 0; i < 5000; ++i) wide += ", 1";
  for (int i = 0; i < 500; ++i) unions += " UNION ALL SELECT 1";
  for (int i = 0; i < 100; ++i) tables += std::format(", access a{}", i);
  for (const std::string& statement : {std::string("SELECT ") + deep, wide, unions, tables,
                                       std::string(100'000, ' ') + "SELECT 1"})
    EXPECT_TRUE(run(session, statement).error.has_value()) << statement.substr(0, 60);
}

TEST(SqlQuery, ReportsTruncationAtTheRowLimit) {
  const SmallSession session(steps(100));
  const QueryResult cut = run(session, "SELECT * FROM access");
  EXPECT_FALSE(cut.error.has_value());
  EXPECT_EQ(cut.rows, 1000u);
  EXPECT_TRUE(cut.truncated);
  const QueryResult whole = run(session, "SELECT * FROM access LIMIT 1000");
  EXPECT_EQ(whole.rows, 1000u);
  EXPECT_FALSE(whole.truncated);
  EXPECT_EQ(run(session, "SELECT * FROM access", {}).rows, 1600u) << "no limits";
}

TEST(SqlQuery, CanBeCancelled) {
  const SmallSession session(steps(100));
  for (const char* statement :
       {"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "SELECT count(*) FROM access a, access b, access c"}) {
    std::atomic<int> checks = 0;
    const QueryResult ran = run(session, statement, {}, [&] { return ++checks < 3; });
    ASSERT_TRUE(ran.error.has_value());
    EXPECT_EQ(ran.error->kind, QueryError::Kind::Cancelled);
  }
}

// The replacements of SQLite's functions return the same results within their limits.
TEST(SqlQuery, BoundedFunctionsMatchSqlite) {
  const SmallSession session(steps(1));
  struct Case {
    const char* call;
    const char* value;
  };
  for (const auto& [call, value] : {
           Case{"instr('tensor', 's')", "4"},
           Case{"instr('tensor', 'x')", "0"},
           Case{"instr('größe', 'e')", "5"},
           Case{"instr(x'00ff01', x'01')", "3"},
           Case{"instr('a', '')", "1"},
           Case{"instr(1234, 3)", "3"},
           Case{"quote(instr(NULL, 'a'))", "NULL"},
           Case{"replace('aXbX', 'X', 'yy')", "ayybyy"},
           Case{"replace('abc', '', 'x')", "abc"},
           Case{"quote(replace('a', NULL, 'x'))", "NULL"},
           Case{"trim('xxaxx', 'x')", "a"},
           Case{"ltrim('äöa', 'öä')", "a"},
           Case{"rtrim('blk.0..', '.')", "blk.0"},
           Case{"trim('  a ')", "a"},
           Case{"trim('xyx', 'xy')", ""},
       }) {
    SCOPED_TRACE(call);
    for (const bool bounded : {false, true}) {
      sql::QueryLimits limits;
      limits.bounded_values = bounded;
      auto query =
          Query::prepare(session.reader(), std::format("SELECT CAST({} AS TEXT)", call), limits);
      ASSERT_TRUE(query.has_value()) << query.error().message;
      const auto row = query->next();
      ASSERT_TRUE(row.has_value());
      EXPECT_EQ(std::get<std::string_view>((**row)[0]), value) << bounded;
    }
  }
}

}  // namespace
}  // namespace tt
