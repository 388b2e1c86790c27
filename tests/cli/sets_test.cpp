// Sets of sessions: tt record --repeat, tt sql and tt compare over several files.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

using nlohmann::json;

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

// Two sets of recordings; the second has a longer prompt.
class Sets : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TempFolder;
    const Result a = run_tt(*folder_,
                            "record -p 'Once upon a time' -n 12 -t 1 --ignore-eos --temp 0 "
                            "--repeat 6 -o a");
    ASSERT_EQ(a.code, 0) << a.err;
    EXPECT_EQ(lines_in(a.out) >= 6, true) << "each answer is printed";
    const Result b = run_tt(*folder_,
                            "record -p 'Once upon a time, there was a little girl who lived in a "
                            "small house near the forest and' -n 12 -t 1 --ignore-eos --temp 0 "
                            "--repeat 6 -o b");
    ASSERT_EQ(b.code, 0) << b.err;
  }
  static void TearDownTestSuite() { delete folder_; }
  static Result tt(const std::string& arguments) { return run_tt(*folder_, arguments); }
  static json answer(const std::string& arguments) {
    const Result result = tt(arguments + " --json");
    EXPECT_EQ(result.code, 0) << result.err;
    return json::parse(result.out, nullptr, false);
  }
  static test::TempFolder* folder_;
};
test::TempFolder* Sets::folder_ = nullptr;

TEST_F(Sets, RepeatWritesOneFileForEachRun) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(*folder_ / "a"))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"run-01.ttrace", "run-02.ttrace", "run-03.ttrace",
                                             "run-04.ttrace", "run-05.ttrace", "run-06.ttrace"}));
  // Each run evaluates the whole prompt.
  const json rows = answer(
      "sql a \"SELECT session, sum(token_count) FROM step WHERE phase = 'prompt' GROUP BY "
      "session\"");
  ASSERT_EQ(rows["rows"].size(), 6u);
  for (const json& row : rows["rows"]) EXPECT_EQ(row[1], rows["rows"][0][1]);
  const Result again = tt("record -p Once -n 1 --repeat 2 -o a");
  EXPECT_EQ(again.code, 1);
  EXPECT_TRUE(again.err.contains("run-01.ttrace")) << again.err;
  EXPECT_EQ(tt("record -p Once -n 1 --repeat 0 -o c").code, 2);
}

TEST_F(Sets, SqlReadsAllSessions) {
  const json one = answer("sql a/run-02.ttrace 'SELECT count(*), sum(size_bytes) FROM access'");
  for (const std::string files : {"a b", "'*/run-0*.ttrace'", "a/run-02.ttrace b/run-02.ttrace"}) {
    const json all = answer("sql " + files +
                            " 'SELECT session, count(*), sum(size_bytes) FROM access GROUP BY 1'");
    EXPECT_EQ(all["rows"].size(), files.starts_with("a/") ? 2u : 12u);
    // Two files called run-02: their names have the folder.
    const auto row = std::ranges::find_if(
        all["rows"], [](const json& of) { return of[0].get<std::string>() == "a/run-02"; });
    ASSERT_NE(row, all["rows"].end()) << all;
    EXPECT_EQ((*row)[1], one["rows"][0][0]);
    EXPECT_EQ((*row)[2], one["rows"][0][1]);
  }
  EXPECT_EQ(answer("sql a 'SELECT DISTINCT session FROM token ORDER BY 1'")["rows"][4][0],
            "run-05");
  EXPECT_EQ(tt("sql a --csv 'SELECT count(*) FROM session'").out, "count(*)\n6\n");
  // A folder whose name looks like a pattern.
  std::filesystem::create_directory(*folder_ / "runs [1]");
  std::filesystem::copy_file(*folder_ / "a/run-02.ttrace", *folder_ / "runs [1]/run.ttrace");
  EXPECT_EQ(tt("sql 'runs [1]' --csv 'SELECT session FROM session'").out, "session\nrun\n");
}

TEST_F(Sets, SqlSaysWhatIsWrong) {
  const Result nothing = tt("sql 'none/*.ttrace' 'SELECT 1'");
  EXPECT_EQ(nothing.code, 1);
  EXPECT_TRUE(nothing.err.contains("no file matches none/*.ttrace")) << nothing.err;
  std::filesystem::create_directory(*folder_ / "empty");
  EXPECT_TRUE(tt("sql empty 'SELECT 1'").err.contains("a folder without sessions"));
  std::filesystem::create_directory(*folder_ / "damaged");
  ASSERT_EQ(std::system(("cp " + (*folder_ / "a/run-01.ttrace").string() + " " +
                         (*folder_ / "damaged/good.ttrace").string() + " && echo text > " +
                         (*folder_ / "damaged/text.ttrace").string())
                            .c_str()),
            0);
  const Result damaged = tt("sql damaged 'SELECT session, count(*) FROM op GROUP BY 1'");
  EXPECT_EQ(damaged.code, 1);
  EXPECT_TRUE(damaged.err.contains("Session text: ")) << damaged.err;
}

// One dataset: Hive partitions with one schema.
TEST_F(Sets, ExportWritesADataset) {
  const Result written = tt("export a b -o lake --format parquet --part-rows 100000");
  ASSERT_EQ(written.code, 0) << written.err;
  std::size_t sessions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder_ / "lake"))
    sessions += entry.path().filename().string().starts_with("session=");
  EXPECT_EQ(sessions, 12u);
  // The same files without choosing their size.
  const Result dataset = tt("export a b -o dataset --format dataset");
  ASSERT_EQ(dataset.code, 0) << dataset.err;
  EXPECT_EQ(
      std::system(std::format("diff -r {0}/lake {0}/dataset", folder_->path().string()).c_str()),
      0);
  const Result one_file = tt("export a -o all.csv");
  EXPECT_EQ(one_file.code, 1);
  EXPECT_TRUE(one_file.err.contains("--format dataset")) << one_file.err;
}

TEST_F(Sets, CompareFindsWhatDiffersAndNothingElse) {
  const json different = answer("compare a b");
  EXPECT_EQ(different["left_sessions"], 6);
  const auto named = [](const json& list, const std::string& name) {
    for (const json& row : list)
      if (row["name"] == name) return row;
    return json();
  };
  // Bytes do not depend on the machine: the longer prompt has more cells of the KV cache.
  const json bytes = named(different["figures"], "bytes read per generated token");
  EXPECT_TRUE(bytes["different"].get<bool>()) << bytes;
  EXPECT_GT(bytes["ratio"].get<double>(), 1);
  // The median of one set, computed by SQLite.
  const json median = answer(
      "sql b \"SELECT median(b) FROM (SELECT 1.0 * sum(bytes_read) / sum(token_count) AS b FROM "
      "step "
      "WHERE phase = 'generate' GROUP BY session)\"");
  EXPECT_NEAR(bytes["right"]["median"].get<double>(), median["rows"][0][0].get<double>(), 1e-6);
  EXPECT_EQ(named(different["facts"], "request.prompt")["left"], "Once upon a time");

  const json same = answer("compare a a");
  for (const char* list : {"figures", "rows"}) {
    EXPECT_FALSE(same[list].empty());
    for (const json& row : same[list]) {
      EXPECT_FALSE(row["different"].get<bool>()) << row;
      EXPECT_EQ(row["p"], 1);
    }
  }
  const json few = answer("compare a/run-01.ttrace 'b/run-0[12].ttrace'");
  EXPECT_TRUE(few["too_few"].get<bool>());
  const Result text = tt("compare a b --by layer");
  EXPECT_TRUE(text.out.contains("bytes read per generated token") && text.out.contains("higher"))
      << text.out;
  EXPECT_TRUE(tt("compare a b --values").err.contains("two sessions"));
}

}  // namespace
}  // namespace tt
