// tt sql, as a table, JSON and CSV.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/tt_program.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

using nlohmann::json;

TEST(SqlCommand, PrintsTableJsonAndCsv) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p 'Once upon a time' -n 6 -t 1 --ignore-eos -o a.ttrace").code,
            0);
  const Result table = run_tt(folder,
                              "sql a.ttrace 'SELECT phase, count(*) AS steps FROM step "
                              "GROUP BY phase ORDER BY phase'");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_TRUE(table.out.contains("phase") && table.out.contains("steps")) << table.out;
  EXPECT_TRUE(table.out.contains("generate") && table.out.contains("prompt")) << table.out;

  const Result rows =
      run_tt(folder,
             "sql a.ttrace --json 'SELECT sum(size_bytes), (SELECT sum(size_bytes) FROM "
             "access_total), (SELECT sum(bytes_read + bytes_written) FROM op) FROM access'");
  ASSERT_EQ(rows.code, 0) << rows.err;
  const json sums = json::parse(rows.out)["rows"][0];
  EXPECT_GT(sums[0], 0);
  EXPECT_EQ(sums[1], sums[0]);
  EXPECT_EQ(sums[2], sums[0]);

  const Result piped = run_tt(folder, "sql a.ttrace --csv - < /dev/null");
  EXPECT_EQ(piped.code, 1);
  EXPECT_TRUE(piped.err.contains("The statement is empty")) << piped.err;
  ASSERT_EQ(std::system(("echo 'SELECT step, phase\nFROM step LIMIT 1' > " +
                         (folder.path() / "ask.sql").string())
                            .c_str()),
            0);
  EXPECT_EQ(run_tt(folder, "sql a.ttrace --csv - < ask.sql").out, "step,phase\n0,prompt\n");
  EXPECT_EQ(run_tt(folder, "sql a.ttrace 'SELECT * FROM expert'").code, 0) << "no rows";
}

TEST(SqlCommand, MarksErrorPosition) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p Once -n 2 -t 1 -o a.ttrace").code, 0);
  const Result wrong = run_tt(folder, "sql a.ttrace 'SELECT nothing FROM access'");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_TRUE(wrong.err.contains("  SELECT nothing FROM access\n         ^")) << wrong.err;
  const Result table = run_tt(folder, "sql a.ttrace 'SELECT 1\nFROM acces'");
  EXPECT_TRUE(table.err.contains("  FROM acces\n       ^")) << table.err;
  const Result rejected = run_tt(folder, "sql a.ttrace ' DROP VIEW phase_totals'");
  EXPECT_EQ(rejected.code, 1);
  EXPECT_TRUE(rejected.err.contains("   DROP VIEW phase_totals\n   ^")) << rejected.err;
  EXPECT_EQ(run_tt(folder, "sql a.ttrace 'DROP TABLE tt_step'").code, 1);
  EXPECT_EQ(run_tt(folder, "sql none.ttrace 'SELECT 1'").code, 1);
  EXPECT_EQ(run_tt(folder, "sql a.ttrace").code, 2);
}

TEST(SqlCommand, StopsOnInterrupt) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p Once -n 2 -t 1 -o a.ttrace").code, 0);
  const std::string command =
      "cd " + folder.path().string() + " && timeout -s INT --preserve-status 1 " +
      std::string(kTestPaths.tt) +
      " sql a.ttrace 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
      "count(*) FROM n' > out 2> err; test $? -eq 130";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(contents(folder / "out") + contents(folder / "err"), "");
}

}  // namespace
}  // namespace tt
