// Bash completion, called as bash calls it: with the words so far and the index of the current
// word.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <format>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tests/support/help_options.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

std::set<std::string> completions(const std::string& words, int typed) {
  const test::TempFolder folder;
  std::ofstream(folder / "session.ttrace") << "";
  std::ofstream(folder / "ask") << std::format(
      "cd {}\nsource {}\nCOMP_WORDS=({}) COMP_CWORD={}\n_tt\nprintf '%s\\n' "
      "\"${{COMPREPLY[@]}}\"\n",
      folder.path().string(), source_path("cli/completion/tt"), words, typed);
  const std::string command = std::format("bash {0}/ask >{0}/out", folder.path().string());
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::set<std::string> answers;
  std::istringstream lines(contents(folder / "out"));
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) answers.insert(line);
  return answers;
}

TEST(Completion, CompletesVerbsOptionsAndFiles) {
  const std::string tt = kTestPaths.tt;
  EXPECT_EQ(completions(tt + " par", 1), std::set<std::string>{"parse"});
  const test::TempFolder folder;
  const std::vector<std::string> verbs = verbs_of_tt(folder);
  EXPECT_EQ(completions(tt + " ''", 1), std::set<std::string>(verbs.begin(), verbs.end()));
  for (const std::string& verb : verbs) {
    SCOPED_TRACE(verb);
    std::set<std::string> options = {"--help"};
    for (const HelpOption& option : options_in(run_tt(folder, verb + " --help").out))
      options.insert(option.name);
    const auto offered = completions(tt + " " + verb + " --", 2);
    EXPECT_TRUE(std::ranges::includes(offered, options));
  }
  EXPECT_EQ(completions(tt + " parse --li", 2), std::set<std::string>{"--limit"});
  EXPECT_TRUE(completions(tt + " record -", 2).contains("-m"));
  EXPECT_EQ(completions(tt + " show sess", 2), std::set<std::string>{"session.ttrace"});
}

TEST(Completion, CompletesOptionValues) {
  const std::string tt = kTestPaths.tt;
  using Words = std::set<std::string>;
  EXPECT_EQ(completions(tt + " hot --by op", 3), (Words{"op", "op_kind"}));
  EXPECT_EQ(completions(tt + " export --format pa", 3), Words{"parquet"});
  EXPECT_EQ(completions(tt + " record --flash-attn ''", 3), (Words{"on", "off", "auto"}));
  EXPECT_EQ(completions(tt + " record --level ''", 3),
            (Words{"off", "minimal", "detailed", "verbose"}));
  // Files for an option without fixed values.
  EXPECT_EQ(completions(tt + " report --output sess", 3), Words{"session.ttrace"});
}

}  // namespace
}  // namespace tt
