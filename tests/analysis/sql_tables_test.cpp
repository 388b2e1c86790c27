// SQL over sessions that a test writes by hand or rolls.
#include <gtest/gtest.h>

#include <fstream>

#include "analysis/sql/trace_tables.h"
#include "tests/analysis/small_session.h"
#include "tests/analysis/sql_check.h"
#include "tests/format/random_session.h"
#include "tests/places.h"

namespace tt {
namespace {

using Lines = std::vector<std::string>;
using test::small_step;
using test::SmallSession;
using testing::SqlSession;

std::filesystem::path write_random(const testing::TempFolder& folder, std::uint64_t seed) {
  const auto path = folder.path() / "random.ttrace";
  EXPECT_TRUE(testing::write_session(path, testing::random_session(seed)).has_value());
  return path;
}

TEST(SqlTables, AreTheNaiveRowsOnRandomSessions) {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const testing::TempFolder folder;
    compared += testing::expect_tables(write_random(folder, seed));
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 15'000u);
}

TEST(SqlTables, ConditionsThatAreHandedDownLoseNoRow) {
  std::uint64_t found = 0;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    const testing::TempFolder folder;
    found += testing::expect_pushed_down(write_random(folder, seed), seed, 30);
    if (HasFailure()) return;
  }
  EXPECT_GT(found, 5'000u);
}

TEST(SqlTables, AnswerWhatPeopleAsk) {
  const SmallSession small({small_step(0), small_step(1), small_step(2)});
  const SqlSession session(small.path);
  EXPECT_EQ(session.rows("SELECT count(*), sum(bytes), sum(size_bytes) FROM access"),
            Lines{"48|" + session.rows("SELECT sum(read_bytes + written_bytes) FROM step")[0] +
                  "|" + session.rows("SELECT sum(read_bytes + written_bytes) FROM op")[0]});
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

TEST(SqlTables, EveryViewAnswers) {
  const SmallSession small({small_step(0), small_step(1)});
  const SqlSession session(small.path);
  for (const std::string_view view : sql::trace_view_names()) {
    SCOPED_TRACE(view);
    const Lines rows = session.rows("SELECT count(*) FROM " + std::string(view));
    EXPECT_EQ(rows.size(), 1u);
    EXPECT_TRUE(rows[0].find_first_not_of("0123456789") == std::string::npos) << rows[0];
  }
}

// The bytes of the file are looked for where the plan says it: steps that cannot
// match are not read, so damage in them is not met.
TEST(SqlTables, ReadOnlyTheStepsThatCanMatchAndSayWhatIsDamaged) {
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

TEST(SqlTables, TotalsOfASessionThatGrowsAreThoseOfItsSteps) {
  const testing::TempFolder folder;
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

TEST(SqlTables, AreDescribedColumnByColumn) {
  std::ifstream file(in_tree("docs/sql.md"));
  const std::string docs{std::istreambuf_iterator<char>(file), {}};
  const SmallSession small({small_step(0)});
  const SqlSession session(small.path);
  for (const auto& names : {sql::trace_table_names(), sql::trace_view_names()}) {
    for (const std::string_view table : names) {
      SCOPED_TRACE(table);
      const auto begin = docs.find("### " + std::string(table) + "\n");
      ASSERT_NE(begin, std::string::npos);
      const std::string part = docs.substr(begin, docs.find("\n##", begin) - begin);
      for (const std::string& column :
           session.rows("SELECT name FROM pragma_table_info('" + std::string(table) + "')"))
        EXPECT_TRUE(part.contains("`" + column + "`")) << column;
    }
  }
}

}  // namespace
}  // namespace tt
