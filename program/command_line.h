// Command-line parsing, with environment variables as an alternative to options.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tt {

// Lets an environment variable set each option of `app` that has a long name: TT_CTX_SIZE for
// --ctx-size. A variable is ignored if the command line contains the option or one that
// excludes it. Its value is validated like the option's.
void name_environment(CLI::App& app, std::string_view prefix = "TT_");

// The program with the verb that was given, and the part of the verb: "tt gguf reorder".
std::string name_with_verbs(const CLI::App& app);

// The arguments after the program name. llama.cpp's short options with several letters (-ngl,
// -ub...), which CLI11 does not support, are replaced by the long options.
std::vector<std::string> arguments_of(int argc, char** argv);

// Parses the arguments and runs the callbacks; call it once per `app`. Returns an exit code if
// the program should end: 0 after --help and --version, 2 after an error, which is printed.
// If TT_COMPLETE is set in the environment to verbs, options or values, runs nothing and prints
// these (cli/completion/tt).
std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments);

}  // namespace tt
