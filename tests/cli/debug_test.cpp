// tt debug: commands of a script, what they print, and how errors end it.
#include <gtest/gtest.h>

#include <format>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/tt_program.h"

namespace tt {
namespace {

using nlohmann::json;

class DebugCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_tt(folder_, "model small --layers 3 -q -o a.gguf").code, 0);
  }
  Result debug(const std::string& commands, const std::string& options = "") {
    std::ofstream(folder_ / "commands") << commands;
    return run_tt(folder_, std::format("debug a.gguf -t 1 -n 3 --ignore-eos {}", options),
                  "cat commands |");
  }
  const test::TempFolder folder_;
};

bool has(const Result& result, std::string_view text) {
  return std::string_view(result.out).contains(text);
}

// What is printed at a stop is what tt values prints of a recording of the same run.
TEST_F(DebugCommand, PrintsTheValuesThatARecordingHas) {
  ASSERT_EQ(run_tt(folder_,
                   "record -m a.gguf -p 'Once upon a time' -n 3 -t 1 --temp 0 "
                   "--ignore-eos -q -o r.ttrace --capture l_out")
                .code,
            0);
  const std::string recorded = run_tt(folder_, "values r.ttrace --op l_out-1 --step 1").out;
  const std::string array = recorded.substr(recorded.find('\n') + 1);
  const Result result = debug(
      "# a comment\nbreak l_out layer 1 step 1\nrun Once upon a time\nprint\nprint[0]\nwhere\n"
      "info breakpoints\ncontinue\n");
  ASSERT_EQ(result.code, 0) << result.err << result.out;
  EXPECT_TRUE(has(result, "breakpoint 1, step 1, op ")) << result.out;
  EXPECT_TRUE(has(result, ", layer 1: ADD l_out-1 = "));
  EXPECT_TRUE(has(result, array)) << result.out << "\nexpected\n" << array;
  EXPECT_TRUE(has(result, "  src0 "));
  EXPECT_TRUE(has(result, "1: l_out layer 1 step 1 (1 time)"));
  EXPECT_TRUE(has(result, "ended (length): ")) << result.out;
}

TEST_F(DebugCommand, StepsWatchesAndAbbreviates) {
  const Result result =
      debug("watch ^l_out\nstart Once upon a time\ns\ns 3\nstep layer\nstep token\nd 1\nc\n");
  ASSERT_EQ(result.code, 0) << result.err << result.out;
  for (const char* line :
       {"breakpoint 1: watch ^l_out", "before step 0, op 0: GET_ROWS", "\nstep 0, op 0: GET_ROWS",
        "\nstep 0, op 3, layer 0: ", "\nstep 1, op 0: GET_ROWS", "watch 1: step 0, op "})
    EXPECT_TRUE(has(result, line)) << line << "\n" << result.out;
  EXPECT_FALSE(has(result, "watch 1: step 1"));
}

TEST_F(DebugCommand, RecordsChangesAndMarksTheSession) {
  const Result result = debug(
      "break ^l_out layer 0\nrun Once upon a time\nzero [*, 3]\nscale 2\ninfo changes\nd 1\nc\n",
      "-o s.ttrace");
  ASSERT_EQ(result.code, 0) << result.err << result.out;
  EXPECT_TRUE(has(result, "elements of l_out-0 changed")) << result.out;
  EXPECT_TRUE(has(result, ": scale 2 ("));
  const json session = run_json(folder_, "show s.ttrace");
  const std::string facts = session["facts"].dump();
  EXPECT_TRUE(facts.contains("l_out-0: zero [*, 3] (")) << facts;
  EXPECT_TRUE(facts.contains("request.breakpoints.0"));
  const Result shown = run_tt(folder_, "show s.ttrace");
  EXPECT_TRUE(has(shown, "Values were changed while it ran, ")) << shown.out;
  EXPECT_TRUE(has(shown, "2 changes (step 0, op ")) << shown.out;
  EXPECT_EQ(run_tt(folder_, "parse s.ttrace --validate").code, 0);
}

TEST_F(DebugCommand, KeepsAChangeForAllTokensUntilItIsReleased) {
  const Result result = debug(
      "break ^l_out layer 0\nrun Once upon a time\nkeep scale 2\nc\ninfo changes\nrelease 1\n"
      "info changes\nd 1\nc\n",
      "-o s.ttrace");
  ASSERT_EQ(result.code, 0) << result.err << result.out;
  EXPECT_TRUE(has(result, " of l_out-0 changed, kept as 1")) << result.out;
  EXPECT_TRUE(has(result, "kept 1: scale 2 from step 0, op ")) << result.out;
  EXPECT_TRUE(has(result, " on, made in 2 steps")) << result.out;
  const json facts = run_json(folder_, "show s.ttrace")["facts"];
  EXPECT_TRUE(facts["altered.0"].get<std::string>().starts_with("step 0, op ")) << facts;
  EXPECT_TRUE(facts["altered.1"].get<std::string>().starts_with("step 1, op ")) << facts;
  EXPECT_FALSE(facts.contains("altered.2"));
}

TEST_F(DebugCommand, AScriptEndsAtItsFirstError) {
  const std::pair<const char*, const char*> cases[] = {
      {"frobnicate\n", "line 1: Unknown command"},
      {"\nstep\n", "line 2: No run is stopped"},
      {"start a\nrun b\n", "A run is stopped"},
      {"start a\nprint nosuch\n", "cannot be read here"},
      {"start a\nstep\nprint[99999]\n", "Index 99999 is not in a dimension"},
      {"delete 1\n", "There is no breakpoint"},
      {"start a\nrelease 1\n", "There is no kept change"},
      {"start a\nstep\nkeep head 3\n", "is not a change"},
  };
  for (const auto& [commands, error] : cases) {
    const Result result = debug(commands);
    EXPECT_EQ(result.code, 1) << commands;
    EXPECT_TRUE(result.err.contains(error)) << commands << result.err;
  }
  EXPECT_EQ(run_tt(folder_, "debug none.gguf </dev/null").code, 1);
  EXPECT_EQ(run_tt(folder_, "debug a.gguf -x none").code, 1);
  EXPECT_EQ(debug("help\nquit\nfrobnicate\n").code, 0);
}

}  // namespace
}  // namespace tt
