// Bash completion, called as bash calls it: with the words so far and the index of the current
// word.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdlib>
#include <format>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "cli/app.h"
#include "cli/commands/verbs.h"
#include "tests/cli/tt_program.h"
#include "tests/support/app_options.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

using Words = std::set<std::string>;

Words completions(const std::string& words, int typed) {
  const test::TempFolder folder;
  std::ofstream(folder / "session.ttrace") << "";
  std::ofstream(folder / "ask") << std::format(
      "cd {}\nsource {}\nCOMP_WORDS=({}) COMP_CWORD={}\n_tt\nprintf '%s\\n' "
      "\"${{COMPREPLY[@]}}\"\n",
      folder.path().string(), source_path("cli/completion/tt"), words, typed);
  const std::string command = std::format("bash {0}/ask >{0}/out", folder.path().string());
  EXPECT_EQ(std::system(command.c_str()), 0);
  Words answers;
  std::istringstream lines(contents(folder / "out"));
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) answers.insert(line);
  return answers;
}

TEST(Completion, CompletesVerbsOptionsAndFiles) {
  const std::string tt = kTestPaths.tt;
  EXPECT_EQ(completions(tt + " par", 1), Words{"parse"});
  Words verbs = {"help"};
  for (const cli::Verb& verb : cli::kVerbs) verbs.insert(verb.name);
  EXPECT_EQ(completions(tt + " ''", 1), verbs);
  EXPECT_EQ(completions(tt + " help par", 2), Words{"parse"});
  int exit_code = 0;
  const auto app = cli::make_app(exit_code);
  for (CLI::App* verb : app->get_subcommands({})) {
    SCOPED_TRACE(verb->get_name());
    Words options = {"--help"};
    for (const CLI::Option* option : listed_options(*verb))
      for (const std::string& name : option->get_lnames()) options.insert("--" + name);
    EXPECT_EQ(completions(tt + " " + verb->get_name() + " --", 2), options);
  }
  EXPECT_EQ(completions(tt + " parse --li", 2), Words{"--limit"});
  EXPECT_TRUE(completions(tt + " record -", 2).contains("-m"));
  EXPECT_EQ(completions(tt + " show sess", 2), Words{"session.ttrace"});
  // A part of a verb.
  EXPECT_EQ(completions(tt + " gguf reo", 2), Words{"reorder"});
  EXPECT_EQ(completions(tt + " gguf reorder --by", 3), Words{"--by-use"});
  EXPECT_EQ(completions(tt + " gguf reorder sess", 3), Words{"session.ttrace"});
}

TEST(Completion, CompletesOptionValues) {
  const std::string tt = kTestPaths.tt;
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
