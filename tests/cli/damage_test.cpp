// Damaged sessions on the command line: every verb processes the steps before the damage, as
// if the session ended there, prints a warning and exits with 1.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <format>
#include <string>
#include <vector>

#include "analysis/analyses.h"
#include "tests/cli/tt_program.h"

namespace tt {
namespace {

namespace fs = std::filesystem;

TEST(Damage, EveryVerbProcessesStepsBeforeDamage) {
  const test::TempFolder folder;
  ASSERT_EQ(
      run_tt(folder, "record -p 'Tell me a story' -n 120 -t 1 --ignore-eos -o whole.ttrace").code,
      0);
  const fs::path whole = folder / "whole.ttrace", cut = folder / "s.ttrace";
  fs::copy_file(whole, cut);
  fs::resize_file(cut, fs::file_size(whole) * 7 / 10);

  // The expected session: the same first steps, cut with sqlite3.
  const Result shown = run_tt(folder, "show s.ttrace");
  const std::size_t at = shown.err.find("covers only the first ");
  ASSERT_NE(at, std::string::npos) << shown.err;
  const int count = std::stoi(shown.err.substr(at + 22));
  EXPECT_GT(count, 10);
  EXPECT_LT(count, 120);
  fs::create_directory(folder / "sound");
  fs::copy_file(whole, folder / "sound" / "s.ttrace");
  const std::string sqlite = std::format(
      "cd '{}' && sqlite3 s.ttrace \"DELETE FROM tt_token WHERE idx >= (SELECT "
      "max(first_token + n_tokens) FROM tt_step WHERE id < {}); DELETE FROM tt_step WHERE id >= "
      "{}; "
      "DELETE FROM tt_template WHERE id NOT IN (SELECT template FROM tt_step); "
      "DELETE FROM tt_meta WHERE key IN ('steps', 'tokens')\"",
      (folder / "sound").string(), count, count);
  ASSERT_EQ(std::system(sqlite.c_str()), 0);

  const std::vector<std::string> same = {"reuse s.ttrace",
                                         "pattern s.ttrace --json",
                                         "heads s.ttrace",
                                         "heads s.ttrace --kv",
                                         "graph s.ttrace",
                                         "sql s.ttrace 'SELECT count(*) FROM step'",
                                         "sql s.ttrace 'SELECT sum(size_bytes) FROM access' --json",
                                         "sql s.ttrace 'SELECT * FROM hottest_tensors' --csv",
                                         "export s.ttrace --format csv -o -",
                                         "export s.ttrace --format ndjson -o -"};
  for (const std::string& verb : same) {
    SCOPED_TRACE(verb);
    const Result damaged = run_tt(folder, verb);
    const std::string expected_path = "sound/s.ttrace";
    std::string expected_verb = verb;
    expected_verb.replace(expected_verb.find("s.ttrace"), 8, expected_path);
    const Result expected = run_tt(folder, expected_verb);
    EXPECT_EQ(expected.code, 0) << expected.err;
    EXPECT_EQ(damaged.code, 1);
    EXPECT_TRUE(damaged.err.contains(std::format("covers only the first {} steps", count)))
        << damaged.err;
    EXPECT_EQ(damaged.out, expected.out);
  }
  // Every analysis: of the steps before the damage, or of all that can be read, and says so.
  for (const Analysis& row : analyses()) {
    SCOPED_TRACE(row.name);
    const auto ask = [&](const char* file) {
      return run_tt(folder, std::format("analyze {} {} {} --json", row.name, file, row.example));
    };
    const Result damaged = ask("s.ttrace"), expected = ask("sound/s.ttrace");
    if (expected.code != 0) {  // it does not apply to this session
      EXPECT_EQ(damaged.code, 1);
    } else if (damaged.err.contains("damaged steps were skipped")) {
      EXPECT_EQ(damaged.code, 1);
    } else {
      // It needs nothing after the damage, or it is that of the steps before.
      EXPECT_EQ(damaged.code,
                damaged.err.contains(std::format("covers only the first {} steps", count)) ? 1 : 0);
      EXPECT_EQ(damaged.out, expected.out);
    }
  }
  for (const char* verb : {"show s.ttrace", "report s.ttrace --format md",
                           "compare s.ttrace whole.ttrace", "compare whole.ttrace s.ttrace"}) {
    SCOPED_TRACE(verb);
    const Result damaged = run_tt(folder, verb);
    EXPECT_EQ(damaged.code, 1);
    EXPECT_TRUE(damaged.err.contains(std::format("covers only the first {} steps", count)))
        << damaged.err;
    EXPECT_GT(damaged.out.size(), 200u);
  }
  const Result hot = run_tt(folder, "hot s.ttrace");
  EXPECT_EQ(hot.code, 1);
  EXPECT_TRUE(hot.err.contains("damaged steps were skipped")) << hot.err;
  // Queries that read only steps before the damage succeed.
  EXPECT_EQ(run_tt(folder, "parse s.ttrace --limit 5").code, 0);
  EXPECT_EQ(run_tt(folder, "graph s.ttrace --step 3").code, 0);
  EXPECT_EQ(run_tt(folder, "export s.ttrace --format csv --last-step 5 -o -").code, 0);
}

// The experts are read beside the rest.
TEST(Damage, AReportOfAMixtureIsThatOfTheStepsBeforeDamage) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model moe -o m.gguf").code, 0);
  ASSERT_EQ(
      run_tt(folder, "record -m m.gguf -p 'A story' -n 60 -t 1 --ignore-eos -o s.ttrace").code, 0);
  fs::resize_file(folder / "s.ttrace", fs::file_size(folder / "s.ttrace") * 7 / 10);
  const Result report = run_tt(folder, "report s.ttrace --format md");
  EXPECT_EQ(report.code, 1);
  EXPECT_TRUE(report.err.contains("covers only the first ")) << report.err;
  EXPECT_TRUE(report.out.contains("expert")) << report.out;
}

}  // namespace
}  // namespace tt
