// SQL over small and random sessions.
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <fstream>
#include <sstream>

#include "analysis/sql/trace_tables.h"
#include "tests/analysis/sql/naive_views.h"
#include "tests/analysis/sql/sql_check.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

using Lines = std::vector<std::string>;
using test::small_step;
using test::SmallSession;
using test::SqlSession;

std::filesystem::path write_random(const test::TempFolder& folder, std::uint64_t seed) {
  const auto path = folder.path() / "random.ttrace";
  EXPECT_TRUE(test::write_session(path, test::random_session(seed)).has_value());
  return path;
}

TEST(SqlTables, MatchReferenceOnRandomSessions) {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const test::TempFolder folder;
    compared += test::expect_tables(write_random(folder, seed));
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 15'000u);
}

TEST(SqlTables, PushedDownConditionsLoseNoRow) {
  std::uint64_t found = 0;
  for (std::uint64_t seed = 0; seed < 13; ++seed) {
    SCOPED_TRACE(seed);
    const test::TempFolder folder;
    found += test::expect_pushed_down(write_random(folder, seed), seed, 30);
    if (HasFailure()) return;
  }
  EXPECT_GT(found, 2'500u);
}

TEST(SqlTables, AnswerTypicalQueries) {
  const SmallSession small({small_step(0), small_step(1), small_step(2)});
  const SqlSession session(small.path);
  EXPECT_EQ(session.rows("SELECT count(*), sum(bytes), sum(size_bytes) FROM access"),
            Lines{"48|" + session.rows("SELECT sum(bytes_read + bytes_written) FROM step")[0] +
                  "|" + session.rows("SELECT sum(bytes_read + bytes_written) FROM op")[0]});
  EXPECT_EQ(session.rows("SELECT DISTINCT tensor_name FROM access WHERE memory_source = 'disk' AND "
                         "layer_id = 0 AND step = 1 ORDER BY 1"),
            (Lines{"blk.0.attn_norm.weight", "blk.0.attn_q.weight"}));
  EXPECT_EQ(session.rows("SELECT operation_type, duration_ns FROM op WHERE step = 2"),
            (Lines{"GET_ROWS|10", "RMS_NORM+MUL|20", "MUL_MAT|30", "MUL_MAT|40", "MUL_MAT|50"}));
  EXPECT_EQ(session.rows("SELECT s.step, t.text FROM step s JOIN token t USING (token_id) "
                         "ORDER BY s.step"),
            Lines{"0|a"});
  EXPECT_EQ(session.rows("SELECT max(tensor_name), min(tensor_name) FROM access"),
            Lines{"token_embd.weight|Qcur-0"});
  EXPECT_EQ(session.rows("SELECT operation_type, accesses FROM access_by_op ORDER BY 1"),
            session.rows("SELECT operation_type, count(*) FROM access GROUP BY 1 ORDER BY 1"));
  EXPECT_EQ(session.rows("SELECT layer_id, accesses, size_bytes FROM access_by_layer ORDER BY 1"),
            session.rows("SELECT layer_id, count(*), sum(bytes) FROM access GROUP BY 1"));
  EXPECT_EQ(session.rows("SELECT tensor_name, accesses, size_bytes FROM access_by_tensor "
                         "ORDER BY 1"),
            session.rows("SELECT tensor_name, count(*), sum(bytes) FROM access GROUP BY 1"));
  EXPECT_EQ(session.rows("SELECT phase, steps FROM phase_totals ORDER BY phase"),
            (Lines{"generate|2", "prompt|1"}));
}

TEST(SqlTables, ViewsMatchReference) {
  const SmallSession small({small_step(0), small_step(1)});
  for (const std::string_view view : sql::trace_view_names())
    EXPECT_TRUE(std::ranges::contains(test::naive_views(), view, &test::NaiveView::name));
  EXPECT_GT(test::expect_views(small.path), 30u);
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    SCOPED_TRACE(seed);
    const test::TempFolder folder;
    compared += test::expect_views(write_random(folder, seed));
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 3'000u);
}

// SQLite returns any bytes as TEXT; clients may accept valid UTF-8 only.
TEST(SqlTables, IncompleteUtf8IsReplaced) {
  const test::TempFolder folder;
  test::RandomSession half;
  half.info = SmallSession::small_info();
  half.info.state = SessionState::Done;
  half.info.title = "cut \xc3";
  half.info.facts = {{"request.prompt", "\xff!"}};
  half.tokens = {{.index = 0, .text = "\xe2\x82"}, {.index = 1, .text = "\xac \xe2\x82\xac"}};
  ASSERT_TRUE(test::write_session(folder / "half.ttrace", half).has_value());
  const SqlSession session(folder / "half.ttrace");
  EXPECT_EQ(session.rows("SELECT text FROM token"), (Lines{"\uFFFD", "\uFFFD \u20ac"}));
  EXPECT_EQ(session.rows("SELECT title, value FROM session, metadata"),
            Lines{"cut \uFFFD|\uFFFD!"});
}

// Names come from the model file and may contain any bytes.
TEST(SqlTables, InvalidUtf8InNamesIsReplaced) {
  GraphTemplate graph = test::small_graph();
  const char* ends[] = {"\xff", "\xe2\x82", "\xf4\x90\x80\x80", "\xed\xa0\x80z", "\u20ac", ""};
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    graph.tensors[i].name += ends[i % std::size(ends)];
    graph.tensors[i].buffer += ends[(i + 1) % std::size(ends)];
  }
  const SmallSession unusual({small_step(0), small_step(1)}, SmallSession::small_info(), graph);
  EXPECT_GT(test::expect_tables(unusual.path), 60u);
  EXPECT_GT(test::expect_views(unusual.path), 30u);
  const SqlSession session(unusual.path);
  EXPECT_EQ(session.rows("SELECT tensor_name FROM tensor WHERE tensor = 0"),
            Lines{"token_embd.weight\uFFFD"});
  EXPECT_EQ(
      session.rows("SELECT count(*) FROM access WHERE tensor_name = 'token_embd.weight\uFFFD'"),
      session.rows("SELECT count(*) FROM access WHERE tensor = 0"));
}

// 300 consecutive steps.
SmallSession long_session() {
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < 300; ++i) {
    Step step = small_step(i);
    const Ns begin{std::int64_t{i} * 1000};
    step.begin = Ns{step.begin.v + begin.v};
    step.first_op = Ns{step.first_op.v + begin.v};
    for (Ns& end : step.op_ends) end = Ns{end.v + begin.v};
    step.end = Ns{step.end.v + begin.v};
    steps.push_back(step);
  }
  return SmallSession(steps);
}

// 300 steps of two tokens; two layers route each token to two of six experts.
SmallSession expert_session() {
  const GraphTemplate graph = test::plausible_graph({.tokens = 2, .experts = 6});
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < 300; ++i) {
    Step step = small_step(i);
    step.begin = step.first_op = step.end = Ns{std::int64_t{i} * 1000};
    step.op_ends.clear();
    for (std::size_t op = 0; op < graph.ops.size(); ++op)
      step.op_ends.push_back(step.end = Ns{step.end.v + 10});
    step.slots.assign(graph.slots.size(), {.ints = {0, 1}, .floats = {}});
    for (std::size_t slot = 0; slot < graph.slots.size(); ++slot)
      if (graph.slots[slot].kind == SlotKind::Experts)
        step.slots[slot].ints = {i % 6, (i + 1) % 6, (i + 2) % 6, (i + 1) % 6};
    steps.push_back(std::move(step));
  }
  return SmallSession(steps, SmallSession::small_info(), graph);
}

// Work of SQLite in virtual machine instructions: a few for each row that a table returns.
// Without pushdown of the condition the table returns all of its rows.
struct ScanCost {
  std::int64_t rows = 0;
  int instructions = 0;
};

ScanCost count(const SqlSession& session, const std::string& of) {
  sqlite3_stmt* made = nullptr;
  EXPECT_EQ(
      sqlite3_prepare_v2(session.get(), ("SELECT count(*) FROM " + of).c_str(), -1, &made, nullptr),
      SQLITE_OK)
      << sqlite3_errmsg(session.get());
  EXPECT_EQ(sqlite3_step(made), SQLITE_ROW);
  const ScanCost cost{.rows = sqlite3_column_int64(made, 0),
                      .instructions = sqlite3_stmt_status(made, SQLITE_STMTSTATUS_VM_STEP, 0)};
  sqlite3_finalize(made);
  return cost;
}

void expect_only_matching_rows(const SqlSession& session, const std::string& table,
                               const std::vector<std::string>& conditions) {
  const ScanCost whole = count(session, table);
  constexpr int kPerRow = 12, kPerStatement = 60;
  EXPECT_GT(whole.instructions, 2 * whole.rows);
  for (const std::string& condition : conditions) {
    SCOPED_TRACE(condition);
    const ScanCost found = count(session, std::format("{} WHERE {}", table, condition));
    EXPECT_GT(found.rows, 0);
    EXPECT_LT(found.rows, whole.rows * 3 / 4);
    EXPECT_LE(found.instructions, kPerRow * found.rows + kPerStatement);
    // Unary + prevents pushdown: SQLite checks each row.
    const ScanCost without_pushdown = count(session, std::format("{} WHERE +{}", table, condition));
    EXPECT_EQ(without_pushdown.rows, found.rows);
    EXPECT_GT(without_pushdown.instructions, 3 * whole.rows);
  }
}

TEST(SqlTables, ReturnOnlyMatchingRowsToSqlite) {
  const SmallSession small = long_session();
  const SqlSession session(small.path);
  for (const std::string table :
       {"access", "op", "step", "tensor", "edge", "access_total", "op_total"}) {
    SCOPED_TRACE(table);
    const std::vector<std::string> steps = {"step = 40", "step BETWEEN 40 AND 45", "step > 290",
                                            "step IN (3, 5)"};
    const std::vector<std::string> tokens = {"token_id = 80", "token_id BETWEEN 80 AND 90",
                                             "token_id >= 590"};
    // Includes a range that begins and ends within a step.
    const std::vector<std::string> times = {"timestamp_ns BETWEEN 40000 AND 45000",
                                            "timestamp_ns BETWEEN 40115 AND 40170",
                                            "timestamp_ns = 40160", "timestamp_ns < 2110"};
    const std::vector<std::string> ops = {"op = 2", "op BETWEEN 1 AND 2",
                                          "operation_type = 'GET_ROWS'", "op_layer_id = 1"};
    std::vector<std::string> conditions;
    const auto add = [&](const std::vector<std::string>& more) {
      conditions.insert(conditions.end(), more.begin(), more.end());
    };
    if (table == "access" || table == "op" || table == "step") add(steps), add(tokens);
    if (table == "access" || table == "op") add(times);
    if (table == "step") add({"begin_ns BETWEEN 40000 AND 45000", "end_ns > 295000"});
    if (table != "step" && table != "tensor" && table != "edge") add(ops);
    if (table == "access" || table == "tensor" || table == "access_total")
      add({"layer_id = 1", "tensor = 2", "tensor BETWEEN 2 AND 3", "tensor_name = 'Qcur-0'"});
    if (table == "op" || table == "op_total") add({"tensor_name = 'Qcur-0'"});
    if (table == "edge") add({"from_tensor = 2", "to_name = 'Qcur-0'", "to_layer_id = 1"});

    expect_only_matching_rows(session, table, conditions);
  }
  const SmallSession experts = expert_session();
  expect_only_matching_rows(
      SqlSession(experts.path), "access",
      {"expert_id = 3", "expert_id BETWEEN 1 AND 2", "expert_id IN (2, 3)", "expert_id > 4"});
}

// Skipped rows of an access also count in the numbers of the rows after them.
TEST(SqlTables, ExpertConditionsLoseNoRow) {
  const SmallSession experts = expert_session();
  const SqlSession session(experts.path);
  for (const char* condition : {"expert_id = 3",
                                "expert_id = '3'",
                                "expert_id IS 3",
                                "expert_id <> 3",
                                "expert_id IN (0, 5)",
                                "expert_id IN (0, NULL)",
                                "expert_id NOT IN (0, 5)",
                                "expert_id < 2.5",
                                "expert_id = 2.5",
                                "expert_id >= 0",
                                "expert_id < 0",
                                "expert_id <= 9223372036854775807",
                                "expert_id BETWEEN 2 AND 3",
                                "expert_id IS NULL",
                                "expert_id IS NOT NULL",
                                "expert_id = 3 OR part = 1",
                                "expert_id = 3 AND part = 1",
                                "expert_id = 3 AND expert_id = 4",
                                "expert_id = 3 AND op = 7",
                                "expert_id = NULL",
                                "expert_id = 2 AND timestamp_ns BETWEEN 2000 AND 9000"}) {
    SCOPED_TRACE(condition);
    EXPECT_EQ(session.rows(std::format(
                  "SELECT rowid, * FROM access WHERE step < 12 AND ({}) ORDER BY 1", condition)),
              session.rows(std::format(
                  "WITH whole AS MATERIALIZED (SELECT rowid AS number_, * FROM access WHERE "
                  "step < 12) SELECT * FROM whole WHERE {} ORDER BY 1",
                  condition)));
  }
  EXPECT_EQ(session.rows("SELECT count(*) FROM access WHERE expert_id = 3 AND step < 6"),
            Lines{"6"});
}

// Steps that cannot match are not read, so damage in them is not an error.
TEST(SqlTables, ReadOnlyMatchingStepsAndReportDamage) {
  const SmallSession small({small_step(0), small_step(1), small_step(2)});
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(small.path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "UPDATE tt_step SET end_ns = end_ns + 1 WHERE id = 1", nullptr,
                         nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  const SqlSession session(small.path);
  EXPECT_EQ(session.rows("SELECT count(*) FROM access WHERE step = 0"), Lines{"16"});
  EXPECT_EQ(session.rows("SELECT count(*) FROM access WHERE step > 1"), Lines{"16"});
  const Lines whole = session.rows("SELECT count(*) FROM access");
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_TRUE(whole[0].contains("damaged") && whole[0].contains("step 1")) << whole[0];
  for (const char* table : {"access_total", "op_total"}) {
    const Lines totals = session.rows(std::string("SELECT count(*) FROM ") + table);
    ASSERT_EQ(totals.size(), 1u);
    EXPECT_TRUE(totals[0].contains("damaged") && totals[0].contains("step 1")) << totals[0];
  }
}

TEST(SqlTables, TotalsFollowAGrowingSession) {
  const test::TempFolder folder;
  SessionInfo info = SmallSession::small_info();
  auto writer = SessionWriter::create(folder / "s.ttrace", info);
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE((*writer)->add_template(TemplateId{1}, test::small_graph()).has_value());
  ASSERT_TRUE((*writer)->commit().has_value());
  const SqlSession session(folder / "s.ttrace");
  for (std::uint32_t i = 0; i < 5; ++i) {
    Step step = small_step(i);
    step.allocation = AllocationId{0};
    ASSERT_TRUE((*writer)->add_step(step).has_value());
    ASSERT_TRUE((*writer)->commit().has_value());
    EXPECT_EQ(session.rows("SELECT sum(accesses), sum(size_bytes) FROM access_total"),
              session.rows("SELECT count(*), sum(bytes) FROM access"));
    EXPECT_EQ(session.rows("SELECT operation_type, executions, duration_ns FROM op_total "
                           "WHERE phase = 'generate' ORDER BY op"),
              session.rows("SELECT operation_type, count(*), sum(duration_ns) FROM op "
                           "WHERE step > 0 GROUP BY op ORDER BY op"));
  }
  EXPECT_EQ(session.rows("SELECT sum(accesses) FROM access_total"), Lines{"80"});
}

// GET_ROWS computes nothing; RMS_NORM with MUL 4 for each of 16 elements; each MUL_MAT 2 for each
// weight and token. Two steps.
TEST(SqlTables, OperationsAreThoseOfTheShapes) {
  const SmallSession small({small_step(0), small_step(1), small_step(2)});
  const SqlSession session(small.path);
  EXPECT_EQ(session.rows("SELECT CAST(operations AS INTEGER) FROM op_total "
                         "WHERE phase = 'generate' ORDER BY op"),
            (Lines{"0", std::to_string(2 * 4 * 16), std::to_string(2 * 2 * 64 * 2),
                   std::to_string(2 * 2 * 64 * 2), std::to_string(2 * 2 * 128 * 2)}));
}

TEST(SqlTables, AStepSaysWhyItTookLong) {
  Step learned = small_step(0), several = small_step(1), one = small_step(2),
       contended = small_step(3);
  learned.timing = Timing::Learned;
  one.n_tokens = 1;
  contended.threads = 1;
  contended.conditions.interval_ns = 100'000'000;
  contended.conditions.cpu_ns = 40'000'000;
  contended.conditions.cpu_wait_ns = 60'000'000;
  const SmallSession small({learned, several, one, contended});
  const SqlSession session(small.path);
  EXPECT_EQ(session.rows("SELECT slow_cause FROM step ORDER BY step"),
            (Lines{"new graph: measured while it was learned", "2 tokens at once", "not recorded",
                   "other programs: waited 60.0 ms for a processor"}));
}

// The section of docs/sql.md about one table or view.
std::string documented(std::string_view table) {
  std::ifstream file(source_path("docs/sql.md"));
  const std::string docs{std::istreambuf_iterator<char>(file), {}};
  const auto begin = docs.find("### " + std::string(table) + "\n");
  return begin == std::string::npos ? "" : docs.substr(begin, docs.find("\n##", begin) - begin);
}

// Returns "INTEGER, ns" for `a` in "| `a`, `b` | INTEGER, ns | description |"; empty if the
// column is missing or listed twice.
std::string documented_type(const std::string& part, const std::string& column) {
  std::istringstream lines(part);
  std::string type;
  for (std::string line; std::getline(lines, line);) {
    const auto end = line.find(" | ", 2);
    if (!line.starts_with("| `") || end == std::string::npos ||
        !line.substr(0, end).contains("`" + column + "`"))
      continue;
    if (!type.empty()) return "";
    type = line.substr(end + 3, line.find(" |", end + 3) - end - 3);
  }
  return type;
}

TEST(SqlTables, FormerColumnNamesAreHidden) {
  const SmallSession small({small_step(0)});
  const SqlSession session(small.path);
  for (const auto& [table, former, name] : {std::tuple{"access", "bytes", "size_bytes"},
                                            {"op", "read_bytes", "bytes_read"},
                                            {"op", "written_bytes", "bytes_written"},
                                            {"step", "read_bytes", "bytes_read"},
                                            {"step", "written_bytes", "bytes_written"},
                                            {"op_total", "read_bytes", "bytes_read"},
                                            {"op_total", "written_bytes", "bytes_written"}}) {
    SCOPED_TRACE(std::format("{}.{}", table, former));
    EXPECT_EQ(session.rows(std::format("SELECT {} FROM {}", former, table)),
              session.rows(std::format("SELECT {} FROM {}", name, table)));
    EXPECT_EQ(session.rows(std::format("SELECT hidden FROM pragma_table_xinfo('{}') "
                                       "WHERE name = '{}'",
                                       table, former)),
              Lines{"1"});
  }
}

TEST(SqlTables, EveryTableColumnIsDocumented) {
  const SmallSession small({small_step(0)});
  const SqlSession session(small.path);
  for (const std::string_view table : sql::trace_table_names()) {
    SCOPED_TRACE(table);
    const std::string part = documented(table);
    // table_xinfo includes hidden columns.
    const std::string info = std::format("pragma_table_xinfo('{}')", table);
    const Lines columns = session.rows("SELECT name FROM " + info);
    const Lines types = session.rows("SELECT type FROM " + info);
    ASSERT_FALSE(columns.empty());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      SCOPED_TRACE(columns[i]);
      const std::string type = documented_type(part, columns[i]);
      const auto comma = type.find(", ");
      EXPECT_EQ(type.substr(0, comma), types[i].substr(0, types[i].find(" HIDDEN")));
      const std::string unit = comma == std::string::npos ? "" : type.substr(comma + 2);
      if (columns[i].ends_with("bytes") || columns[i].ends_with("_offset")) {
        EXPECT_EQ(unit, "bytes");
      }
      if (columns[i].ends_with("_ns")) {
        EXPECT_TRUE(unit == "ns" || unit == "ns of Unix time") << unit;
      }
    }
  }
}

TEST(SqlTables, EveryViewColumnIsDocumented) {
  const SmallSession small({small_step(0)});
  const SqlSession session(small.path);
  for (const std::string_view view : sql::trace_view_names()) {
    SCOPED_TRACE(view);
    const std::string part = documented(view);
    for (const std::string& column :
         session.rows(std::format("SELECT name FROM pragma_table_info('{}')", view))) {
      SCOPED_TRACE(column);
      EXPECT_TRUE(part.contains("`" + column + "`"));
      const bool is_real = part.contains("`" + column + "` (REAL");
      for (const std::string& type :
           session.rows(std::format("SELECT DISTINCT typeof({}) FROM {}", column, view))) {
        EXPECT_TRUE(type == "null" || (type == "real") == is_real) << type;
      }
    }
  }
}

}  // namespace
}  // namespace tt
