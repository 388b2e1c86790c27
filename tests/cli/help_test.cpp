// What `tt --help` and each verb's --help promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tests/help_options.h"

namespace tt {
namespace {

TEST(Help, EveryOptionOfEveryVerbIsDocumentedAndHasAVariable) {
  const testing::TempFolder folder;
  const std::vector<std::string> verbs = verbs_of_tt(folder);
  for (const std::string& verb : verbs) {
    SCOPED_TRACE(verb);
    const Result help = run_tt(folder, verb + " --help");
    EXPECT_EQ(help.code, 0);
    const std::vector<HelpOption> options = options_in(help.out);
    EXPECT_FALSE(options.empty());
    // Of a model to be made, --context is another thing than of one that is run.
    const std::string prefix = verb == "model" ? "TT_MODEL_" : "TT_";
    for (const HelpOption& option : options) {
      EXPECT_EQ(option.variable, variable_of(option.name, prefix));
      EXPECT_NE(option.text, "") << option.name;
    }
  }
}

TEST(Help, EveryVerbHasAnExampleAndAnswersPrograms) {
  const testing::TempFolder folder;
  const std::string all = run_tt(folder, "--help").out;
  EXPECT_TRUE(all.contains("\nExample: tt record ")) << all;
  // These write what programs read, and print no answer.
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
