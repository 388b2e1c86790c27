#include "program/command_line.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program/validators.h"
#include "tests/cli/arguments.h"

namespace tt {
namespace {

TEST(Arguments, ReplacesLlamaCppShortNamesWithLongNames) {
  EXPECT_EQ(expand_arguments({"-ngl", "3", "-ub", "64", "-m", "x", "--", "-ub"}),
            (std::vector<std::string>{"--n-gpu-layers", "3", "--ubatch-size", "64", "-m", "x", "--",
                                      "-ub"}));
  EXPECT_EQ(expand_arguments({}), std::vector<std::string>{});
}

// An environment variable, set for the lifetime of the object.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~EnvironmentVariable() { unsetenv(name_); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
};

// A command line with a verb and all kinds of options: bounds, choices, flags, multiple values,
// mutually exclusive options.
struct Parsed {
  std::optional<std::string> left, right;
  bool quiet = false, map = true;
  int count = 1;
  std::string word;
  std::vector<std::string> several;
  std::optional<int> exit_code;
  std::string error_output;
};

Parsed parse_arguments(std::vector<std::string> arguments) {
  Parsed out;
  CLI::App app("test", "test");
  app.require_subcommand(1);
  CLI::App* verb = app.add_subcommand("run");
  auto* left = verb->add_option("--left", out.left);
  auto* right = verb->add_option("-r,--right", out.right)->excludes(left);
  verb->add_flag("--quiet", out.quiet)->excludes(left)->excludes(right);
  verb->add_flag("--map,!--no-map", out.map);
  verb->add_option("--count", out.count)->check(whole_number(0, 9));
  verb->add_option("--word", out.word)->transform(one_of({"one", "two"}));
  verb->add_option("--several", out.several)->delimiter(',');
  name_environment(*verb);
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  out.exit_code = parse(app, std::move(arguments));
  ::testing::internal::GetCapturedStdout();
  out.error_output = ::testing::internal::GetCapturedStderr();
  return out;
}

TEST(CommandLine, ArgumentsTakePrecedenceOverEnvironment) {
  const EnvironmentVariable count("TT_COUNT", "7"), map("TT_MAP", "false"), word("TT_WORD", "TWO"),
      several("TT_SEVERAL", "a,b"), empty("TT_LEFT", "");
  const Parsed from_environment = parse_arguments({"run"});
  ASSERT_FALSE(from_environment.exit_code.has_value()) << from_environment.error_output;
  EXPECT_EQ(from_environment.count, 7);
  EXPECT_FALSE(from_environment.map);
  EXPECT_EQ(from_environment.word, "two");
  EXPECT_EQ(from_environment.several, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(from_environment.left.has_value());
  const Parsed from_arguments =
      parse_arguments({"run", "--count", "8", "--map", "--word=one", "--several", "c"});
  EXPECT_EQ(from_arguments.count, 8);
  EXPECT_TRUE(from_arguments.map);
  EXPECT_EQ(from_arguments.word, "one");
  EXPECT_EQ(from_arguments.several, std::vector<std::string>{"c"});
}

TEST(CommandLine, RejectsInvalidVariablesLikeOptions) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"count", "10"},   {"count", "-1"},  {"count", "many"},
      {"word", "three"}, {"map", "maybe"}, {"quiet", "3x"}};
  for (const auto& [name, value] : bad) {
    SCOPED_TRACE(name + "=" + value);
    const Parsed option = parse_arguments({"run", "--" + name + "=" + value});
    EXPECT_EQ(option.exit_code, 2);
    EXPECT_TRUE(option.error_output.starts_with("test run: --" + name + ": must be "))
        << option.error_output;
    std::string variable = "TT_" + name;
    for (char& c : variable) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const EnvironmentVariable set(variable.c_str(), value.c_str());
    const Parsed rejected = parse_arguments({"run"});
    EXPECT_EQ(rejected.exit_code, 2);
    EXPECT_TRUE(rejected.error_output.starts_with("test run: " + variable + ": must be "))
        << rejected.error_output;
    EXPECT_EQ(parse_arguments({"run", "--help"}).exit_code, 0);
  }
}

TEST(CommandLine, ExcludingArgumentDisablesVariable) {
  const EnvironmentVariable left("TT_LEFT", "of the environment");
  const Parsed right = parse_arguments({"run", "--right", "of the command line"});
  ASSERT_FALSE(right.exit_code.has_value()) << right.error_output;
  EXPECT_EQ(right.right, "of the command line");
  EXPECT_FALSE(right.left.has_value());
  EXPECT_EQ(parse_arguments({"run"}).left, "of the environment");
  {
    const EnvironmentVariable quiet("TT_QUIET", "false");
    EXPECT_EQ(parse_arguments({"run"}).left, "of the environment");
  }
  const EnvironmentVariable also("TT_RIGHT", "too");
  const Parsed both = parse_arguments({"run"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_TRUE(both.error_output.contains("TT_LEFT") && both.error_output.contains("TT_RIGHT"))
      << both.error_output;
  EXPECT_EQ(parse_arguments({"run", "--right", "x"}).right, "x");
  EXPECT_EQ(parse_arguments({"run", "--right", "x", "--left", "y"}).exit_code, 2);
}

TEST(CommandLine, ReportsErrors) {
  struct Case {
    std::vector<std::string> arguments;
    const char* message;
  };
  const Case cases[] = {
      {{}, "test: a verb is required\nRun `test --help` for a list of verbs.\n"},
      {{"frobnicate"}, "test: unknown verb 'frobnicate'\nRun `test --help` for a list of verbs.\n"},
      {{"--nope"},
       "test: unknown option --nope before the verb. A verb comes first, such as: test "},
      {{"runn"}, "test: unknown verb 'runn'. Did you mean run?\n"},
      {{"run", "--frobnicate"}, "test run: unknown option --frobnicate\n"},
      {{"run", "--cuont", "1"}, "test run: unknown option --cuont. Did you mean --count?\n"},
      {{"run", "--cuont=1"}, "test run: unknown option --cuont. Did you mean --count?\n"},
      {{"run", "one", "two", "three"}, "test run: unexpected argument 'one'\n"},
      {{"run", "--word", "tow"}, "must be one of one, two, not 'tow'. Did you mean two?\n"},
      {{"run", "--count"}, "test run: --count requires a value\n"},
      {{"run", "--count", "1", "--count", "2"}, "test run: --count: may be given only once\n"},
      {{"run", "--count", "10"}, "--count: must be a whole number from 0 to 9, not '10'\n"},
      {{"run", "--count", "99999999999999999999"}, "from 0 to 9, not '99999999999999999999'\n"},
      {{"run", "--word", "three"}, "--word: must be one of one, two, not 'three'\n"},
      {{"--take-values", "x", "run"}, "not expected: --take-values"},
  };
  for (const Case& c : cases) {
    const Parsed wrong = parse_arguments(c.arguments);
    EXPECT_EQ(wrong.exit_code, 2) << c.message;
    EXPECT_TRUE(wrong.error_output.contains(c.message)) << wrong.error_output << c.message;
  }
}

TEST(Values, ValidatesNumbersSizesTextAndPaths) {
  struct Case {
    CLI::Validator validator;
    std::string value;
    const char* error;  // empty: the value is valid
  };
  const CLI::Validator share = number(NumberBounds{"share", 0, 1});
  const CLI::Validator days = number_above_zero(100'000);
  const CLI::Validator size = size_in_bytes();
  const Case cases[] = {
      {share, "0", ""},
      {share, "1", ""},
      {share, "1.01", "must be a number from 0 to 1, not '1.01'"},
      {share, "-0.5", "must be a number from 0 to 1, not '-0.5'"},
      {share, "nan", "must be a number from 0 to 1, not 'nan'"},
      {share, "inf", "must be a number from 0 to 1, not 'inf'"},
      {share, "", "must be a number from 0 to 1, not ''"},
      {days, "0.5", ""},
      {days, "0", "must be a number above 0 and at most 100000, not '0'"},
      {days, "1e300", "must be a number above 0 and at most 100000, not '1e300'"},
      {whole_number(bounds_of("seed")), "4294967295", ""},
      {whole_number(bounds_of("seed")), "4294967296",
       "must be a whole number from -1 to 4294967295, not '4294967296'"},
      {size, "20G", ""},
      {size, "500 MB", ""},
      {size, "16EiB", "must be a size like 500MB or 20GiB, not '16EiB'"},
      {size, "18446744073709551616",
       "must be a size like 500MB or 20GiB, not '18446744073709551616'"},
      {size, "5MBB", "must be a size like 500MB or 20GiB, not '5MBB'"},
      {size, "1iB", "must be a size like 500MB or 20GiB, not '1iB'"},
      {size, "", "must be a size like 500MB or 20GiB, not ''"},
      {size, "much", "must be a size like 500MB or 20GiB, not 'much'"},
      {size, "-1", "must be a size like 500MB or 20GiB, not '-1'"},
      {size, "99999999999999G", "must be a size like 500MB or 20GiB, not '99999999999999G'"},
      {utf8_text(), "a\u00e9", ""},
      {utf8_text(), "ab\xff", "is not valid UTF-8: invalid byte 0xff at offset 2"},
      {existing_folder(), "/", ""},
      {existing_folder(), "/nonexistent", "must be an existing folder, not '/nonexistent'"},
      {existing_path(), "/nonexistent", "'/nonexistent' does not exist"},
  };
  for (const Case& c : cases) {
    std::string value = c.value;
    EXPECT_EQ(c.validator(value), c.error) << c.value;
  }
  for (const auto& [text, value] : {std::pair{"2K", "2048"},
                                    {"2KB", "2000"},
                                    {"2kib", "2048"},
                                    {"500MB", "500000000"},
                                    {"500MiB", "524288000"},
                                    {"3 B", "3"},
                                    {"15EiB", "17293822569102704640"}}) {
    std::string bytes = text;
    EXPECT_EQ(size(bytes), "") << text;
    EXPECT_EQ(bytes, value) << text;
  }
}

}  // namespace
}  // namespace tt
