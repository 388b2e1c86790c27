// What `tt --help` and each verb's --help promise.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tests/help_options.h"

namespace tt {
namespace {

std::vector<std::string> verbs_in(const std::string& help) {
  std::vector<std::string> verbs;
  std::istringstream lines(help.substr(help.find("SUBCOMMANDS:")));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  ") && line[2] != ' ')
      verbs.push_back(line.substr(2, line.find(' ', 2) - 2));
  return verbs;
}

TEST(Help, EveryOptionOfEveryVerbIsDocumentedAndHasAVariable) {
  const testing::TempFolder folder;
  const std::vector<std::string> verbs = verbs_in(run_tt(folder, "--help").out);
  ASSERT_GE(verbs.size(), 16u);
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

}  // namespace
}  // namespace tt
