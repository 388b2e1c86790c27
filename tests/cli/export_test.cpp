// tt export and tt import.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include "tests/cli/tt_program.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

std::size_t files_in(const test::TempFolder& folder) {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++n;
  return n;
}

TEST(ExportCommand, RoundTripsThroughImport) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p 'Once upon' -n 6 -t 1 --ignore-eos -o a.ttrace").code, 0);
  // The extension selects the format.
  for (const char* name : {"a.csv", "a.json", "a.ndjson", "a.parquet", "a.arrow", "a.arrows",
                           "a.trace.json.gz", "a.pftrace", "a.dot"}) {
    const Result result = run_tt(folder, std::string("export a.ttrace -o ") + name);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_GT(std::filesystem::file_size(folder / name), 1000U) << name;
  }
  EXPECT_EQ(contents(folder / "a.parquet").substr(0, 4), "PAR1");
  EXPECT_EQ(contents(folder / "a.trace.json.gz").substr(0, 2), "\x1f\x8b");
  const Result plain = run_tt(folder, "export a.ttrace -o a.trace.json");
  EXPECT_EQ(plain.code, 1);
  EXPECT_TRUE(plain.err.contains("a.trace.json.gz")) << plain.err;
  EXPECT_EQ(contents(folder / "a.dot"), run_tt(folder, "graph a.ttrace").out);
  ASSERT_EQ(run_tt(folder, "export a.ttrace -o run --format folder").code, 0);
  for (const char* picture :
       {"run/analysis/heatmap_token_layer.png", "run/analysis/timeline_offset.png"})
    EXPECT_EQ(contents(folder / picture).substr(1, 3), "PNG") << picture;
  ASSERT_EQ(run_tt(folder, "export a.ttrace -o lake --format parquet --part-rows 1000").code, 0);

  ASSERT_EQ(run_tt(folder, "import a.ndjson -o b.ttrace").code, 0);
  ASSERT_EQ(run_tt(folder, "import run -o c.ttrace").code, 0);
  const auto csv = contents(folder / "a.csv");
  for (const char* again : {"b", "c"}) {
    const Result result =
        run_tt(folder, std::string("export ") + again + ".ttrace -o -  --format csv");
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(std::ranges::count(result.out, '\n'), std::ranges::count(csv, '\n'));
  }
}

TEST(ExportCommand, NamesOutputsAfterTheStartOfTheSession) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p 'Once upon' -n 2 -t 1 --ignore-eos -o a.ttrace").code, 0);
  std::filesystem::create_directory(folder / "out.d");
  for (const char* format : {"folder", "ndjson", "parquet"}) {
    const Result result =
        run_tt(folder, std::string("export a.ttrace -o out.d --dated --format ") + format);
    EXPECT_EQ(result.code, 0) << result.err;
  }
  std::string names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "out.d"))
    names += entry.path().filename().string() + "\n";
  const std::string date = "[0-9]{8}_[0-9]{6}";
  for (const std::string& pattern :
       {"run_" + date + "\n", "llama_instrumentation_" + date + "\\.log\n",
        "session_" + date + "\\.parquet\n"})
    EXPECT_TRUE(std::regex_search(names, std::regex(pattern))) << pattern << names;
  const Result missing = run_tt(folder, "export a.ttrace -o none.d --dated --format folder");
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(missing.err.contains("none.d is not a folder")) << missing.err;
  const Result unknown = run_tt(folder, "export a.ttrace -o out.d --dated");
  EXPECT_TRUE(unknown.err.contains("--dated requires --format")) << unknown.err;
}

TEST(ExportCommand, ReportsErrorsAndLeavesNoFiles) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p Once -n 2 -t 1 -o a.ttrace").code, 0);
  const Result unknown = run_tt(folder, "export a.ttrace -o a.xyz");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_TRUE(unknown.err.contains("parquet")) << unknown.err;
  ASSERT_EQ(run_tt(folder, "export a.ttrace -o a.csv").code, 0);
  const Result again = run_tt(folder, "export a.ttrace -o a.csv");
  EXPECT_EQ(again.code, 1);
  EXPECT_TRUE(again.err.contains("--force")) << again.err;
  EXPECT_EQ(run_tt(folder, "export a.ttrace -o a.csv --force").code, 0);
  EXPECT_EQ(run_tt(folder, "export a.ttrace").code, 2);
  EXPECT_EQ(run_tt(folder, "export none.ttrace -o n.csv").code, 1);
  EXPECT_EQ(run_tt(folder, "import a.csv -o n.ttrace").code, 1);
  for (const char* format : {"csv", "parquet", "folder"}) {
    SCOPED_TRACE(format);
    const std::string command = std::string("export a.ttrace -o b --format ") + format;
    const Result out_of_range = run_tt(folder, command + " --from-step 500");
    EXPECT_EQ(out_of_range.code, 1);
    EXPECT_TRUE(out_of_range.err.contains("Step 500 does not exist: the session has steps 0 to "))
        << out_of_range.err;
    const Result reversed = run_tt(folder, command + " --from-step 1 --to-step 1");
    EXPECT_EQ(reversed.code, 1);
    EXPECT_EQ(reversed.err, "tt export: --from-step must be less than --to-step\n");
  }
  EXPECT_EQ(files_in(folder), 4U);  // a.ttrace, a.csv, out, err
}

// The page itself is tested in webui/test/e2e/html.e2e.ts.
TEST(ExportCommand, RejectsOptionsOfRowsForAFileWithThePage) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p Once -n 2 -t 1 -o a.ttrace").code, 0);
  for (const char* option : {"--per-head", "--per-token", "--part-rows 10", "--level minimal"}) {
    const Result result = run_tt(folder, std::string("export a.ttrace -o a.html ") + option);
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.err.contains("has no rows")) << result.err;
  }
  std::ofstream(folder / "a.html") << "mine";
  const Result again = run_tt(folder, "export a.ttrace -o a.html");
  EXPECT_EQ(again.code, 1);
  EXPECT_TRUE(again.err.contains("--force")) << again.err;
  EXPECT_EQ(contents(folder / "a.html"), "mine");
  EXPECT_EQ(files_in(folder), 4U);  // a.ttrace, a.html, out, err
}

TEST(ImportCommand, ImportsAccessRowsWithoutSteps) {
  const test::TempFolder folder;
  std::ofstream(folder / "bare.log") << R"({"type":"tensor_log","tensor_name":"x"})";
  const Result bare = run_tt(folder, "import bare.log -o n.ttrace");
  EXPECT_EQ(bare.code, 1);
  EXPECT_TRUE(bare.err.contains("size_bytes")) << bare.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "n.ttrace"));
  std::ofstream(folder / "rows.log")
      << R"({"type":"tensor_log","tensor_name":"the-weight","size_bytes":12})";
  const Result rows = run_tt(folder, "import rows.log -o n.ttrace");
  EXPECT_EQ(rows.code, 0) << rows.err;
  EXPECT_TRUE(rows.err.contains("1 step, 1 access, 12 bytes")) << rows.err;
  EXPECT_TRUE(run_tt(folder, "parse n.ttrace").out.contains("the-weight"));
  for (const char* verb : {"show n.ttrace", "report n.ttrace --format md"}) {
    const std::string output = run_tt(folder, verb).out;
    EXPECT_TRUE(output.contains("at an unknown time")) << output;
    EXPECT_FALSE(output.contains("1970")) << output;
  }
}

// timeout(1) signals the process and then its group, which must count as one signal. The signal
// may arrive after the file is complete.
TEST(ExportCommand, InterruptLeavesNoIncompleteFile) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "record -p Once -n 200 -t 1 --ignore-eos -o a.ttrace").code, 0);
  ASSERT_EQ(run_tt(folder, "export a.ttrace -o whole.csv").code, 0);
  const std::string whole = contents(folder / "whole.csv");
  for (const char* seconds : {"0.02", "0.1", "0.3", "0.6"}) {
    const std::string command =
        std::string("cd ") + folder.path().string() + " && timeout -s INT --preserve-status " +
        seconds + " " + std::string(kTestPaths.tt) + " export a.ttrace --force -o a.csv 2>err";
    const int status = std::system(command.c_str());
    const bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const bool there = std::filesystem::exists(folder / "a.csv");
    EXPECT_TRUE(there || !done) << seconds;
    EXPECT_TRUE(!there || contents(folder / "a.csv") == whole) << seconds;
    EXPECT_FALSE(std::filesystem::exists(folder / "a.csv-new")) << seconds;
    std::filesystem::remove(folder / "a.csv");
  }
}

}  // namespace
}  // namespace tt
