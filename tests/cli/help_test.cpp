// The --help output of tt and of each verb.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/commands/verbs.h"
#include "tests/cli/tt_program.h"
#include "tests/support/app_options.h"

namespace tt {
namespace {

// Also of the parts of a verb, such as gguf reorder.
void expect_described_options(CLI::App& verb, const std::string& prefix) {
  SCOPED_TRACE(verb.get_name());
  const std::vector<CLI::Option*> options = listed_options(verb);
  EXPECT_FALSE(options.empty());
  for (const CLI::Option* option : options) {
    EXPECT_EQ(option->get_envname(), variable_of(long_name(*option), prefix));
    EXPECT_NE(option->get_description(), "") << long_name(*option);
  }
  for (CLI::App* part : verb.get_subcommands({})) expect_described_options(*part, prefix);
}

TEST(Help, EveryOptionHasDescriptionAndVariable) {
  int exit_code = 0;
  const auto app = cli::make_app(exit_code);
  for (CLI::App* verb : app->get_subcommands({})) {
    const auto row = std::ranges::find(cli::kVerbs, verb->get_name(), &cli::Verb::name);
    ASSERT_NE(row, cli::kVerbs.end());
    expect_described_options(*verb, row->variable_prefix);
  }
}

// Error messages for invalid values contain no CLI11 texts and name the option or variable.
TEST(Help, EveryOptionReportsInvalidValues) {
  const test::TempFolder folder;
  std::size_t rejected = 0;
  int exit_code = 0;
  const auto app = cli::make_app(exit_code);
  for (CLI::App* verb : app->get_subcommands({})) {
    for (const CLI::Option* option : listed_options(*verb)) {
      const std::string type = option->get_type_name();
      if (is_flag(*option) || type == "TEXT" || type == "FILE" || type == "DIR") continue;
      const std::string name = long_name(*option), variable = option->get_envname();
      SCOPED_TRACE(verb->get_name() + " " + name);
      // Required arguments are missing, so the command fails even if the value is valid.
      const Result by_argument = run_tt(folder, verb->get_name() + " " + name + "=@");
      const Result by_variable = run_tt(folder, verb->get_name(), variable + "=@");
      for (const Result& result : {by_argument, by_variable}) {
        EXPECT_EQ(result.code, 2) << result.err;
        for (const char* leak : {"Could not convert", " OR ", "{", " in [", "FAILED", "missing"})
          EXPECT_FALSE(result.err.contains(leak)) << result.err;
      }
      const auto why = by_argument.err.find(name + ": ");
      if (why == std::string::npos) continue;
      ++rejected;
      EXPECT_TRUE(by_variable.err.contains(variable + by_argument.err.substr(why + name.size())))
          << by_argument.err << by_variable.err;
    }
  }
  EXPECT_GE(rejected, 50u);
}

// The table of verbs is what --help lists, and each verb has a source file, by which ./tt
// recognizes it.
TEST(Help, ListsTheTableOfVerbs) {
  const test::TempFolder folder;
  const std::string all = run_tt(folder, "--help").out;
  std::set<std::string> names, files;
  for (const cli::Verb& verb : cli::kVerbs) {
    EXPECT_TRUE(all.contains(std::string("\n  ") + verb.name + " ")) << verb.name;
    names.insert(verb.name);
  }
  for (const auto& entry : std::filesystem::directory_iterator(source_path("cli/commands")))
    if (std::string file = entry.path().filename(); file.ends_with("_command.cpp")) {
      std::ranges::replace(file, '_', '-');
      files.insert(file.substr(0, file.find("-command.cpp")));
    }
  EXPECT_EQ(names, files);
}

TEST(Help, HelpVerbPrintsTheSameAsHelpOption) {
  const test::TempFolder folder;
  const std::string all = run_tt(folder, "help").out;
  EXPECT_EQ(all, run_tt(folder, "--help").out);
  EXPECT_TRUE(all.contains("tt help VERB")) << all;
  for (const cli::Verb& verb : cli::kVerbs) {
    const Result help = run_tt(folder, std::string("help ") + verb.name);
    EXPECT_EQ(help.code, 0);
    EXPECT_EQ(help.out, run_tt(folder, std::string(verb.name) + " --help").out);
  }
  const Result unknown = run_tt(folder, "help frobnicate");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "tt: unknown verb 'frobnicate'\nRun `tt --help` for a list of verbs.\n");
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
  // These verbs write files or talk to a person, and have no JSON output.
  const std::set<std::string> writers = {"attach", "debug", "export", "import", "model", "record"};
  int exit_code = 0;
  const auto app = cli::make_app(exit_code);
  for (CLI::App* verb : app->get_subcommands({})) {
    const std::string name = verb->get_name(), footer = verb->get_footer();
    SCOPED_TRACE(name);
    EXPECT_TRUE(footer.contains("Example: tt ") && footer.contains("tt " + name + " ")) << footer;
    EXPECT_EQ(verb->get_option_no_throw("--json") != nullptr, !writers.contains(name));
  }
}

}  // namespace
}  // namespace tt
