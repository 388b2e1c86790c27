// The --help output of tt and of each verb.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tests/support/help_options.h"

namespace tt {
namespace {

TEST(Help, EveryOptionHasDescriptionAndVariable) {
  const test::TempFolder folder;
  const std::vector<std::string> verbs = verbs_of_tt(folder);
  for (const std::string& verb : verbs) {
    SCOPED_TRACE(verb);
    const Result help = run_tt(folder, verb + " --help");
    EXPECT_EQ(help.code, 0);
    const std::vector<HelpOption> options = options_in(help.out);
    EXPECT_FALSE(options.empty());
    // Another prefix, because --context has another meaning in other verbs.
    const std::string prefix = verb == "model" ? "TT_MODEL_" : "TT_";
    for (const HelpOption& option : options) {
      EXPECT_EQ(option.variable, variable_of(option.name, prefix));
      EXPECT_NE(option.text, "") << option.name;
    }
  }
}

// Error messages for invalid values contain no CLI11 texts and name the option or variable.
TEST(Help, EveryOptionReportsInvalidValues) {
  const test::TempFolder folder;
  std::size_t rejected = 0;
  for (const std::string& verb : verbs_of_tt(folder)) {
    for (const HelpOption& option : options_in(run_tt(folder, verb + " --help").out)) {
      if (option.type.empty() || option.type == "TEXT" || option.type == "FILE") continue;
      SCOPED_TRACE(verb + " " + option.name);
      // Required arguments are missing, so the command fails even if the value is valid.
      const Result argument = run_tt(folder, verb + " " + option.name + "=@");
      const Result variable = run_tt(folder, verb, option.variable + "=@");
      for (const Result& result : {argument, variable}) {
        EXPECT_EQ(result.code, 2) << result.err;
        for (const char* leak : {"Could not convert", " OR ", "{", " in [", "FAILED", "missing"})
          EXPECT_FALSE(result.err.contains(leak)) << result.err;
      }
      const auto why = argument.err.find(option.name + ": ");
      if (why == std::string::npos) continue;
      ++rejected;
      EXPECT_TRUE(
          variable.err.contains(option.variable + argument.err.substr(why + option.name.size())))
          << argument.err << variable.err;
    }
  }
  EXPECT_GE(rejected, 50u);
}

TEST(Help, UnknownAndMissingVerbsExitWithTwo) {
  const test::TempFolder folder;
  const Result unknown = run_tt(folder, "frobnicate");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "tt: unknown verb 'frobnicate'\nRun `tt --help` for a list of verbs.\n");
  EXPECT_EQ(run_tt(folder, "").code, 2);
}

TEST(Help, InvalidModelArgumentsExitWithTwo) {
  const test::TempFolder folder;
  for (const char* arguments : {"", "nosuch", "small --quant nosuch",
                                "small --quant-class nosuch=q8_0", "small --heads 7"}) {
    const Result result = run_tt(folder, std::string("model ") + arguments);
    EXPECT_EQ(result.code, 2) << arguments << result.err;
    EXPECT_TRUE(result.err.starts_with("tt model: ")) << result.err;
  }
  EXPECT_EQ(run_tt(folder, "model small -o no/such/folder/x.gguf").code, 1);
}

TEST(Help, EveryVerbHasExampleAndJsonOption) {
  const test::TempFolder folder;
  const std::string all = run_tt(folder, "--help").out;
  EXPECT_TRUE(all.contains("\nExample: tt record ")) << all;
  // These verbs write files and have no JSON output.
  const std::set<std::string> writers = {"export", "import", "model", "record"};
  for (const std::string& verb : verbs_of_tt(folder)) {
    SCOPED_TRACE(verb);
    const std::string help = run_tt(folder, verb + " --help").out;
    const std::size_t example = help.find("\nExample: tt ");
    ASSERT_NE(example, std::string::npos) << help;
    EXPECT_TRUE(help.substr(example).contains("tt " + verb + " ")) << help;
    const std::vector<HelpOption> options = options_in(help);
    EXPECT_EQ(std::ranges::count(options, "--json", &HelpOption::name) == 1,
              !writers.contains(verb));
  }
}

}  // namespace
}  // namespace tt
