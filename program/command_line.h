// A program's command line, and the environment that stands for parts of it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tt {

// Every option of `app` that has a long name can be given by the environment,
// too: --ctx-size as TT_CTX_SIZE. Asked where the command line does not have the
// option, nor one that excludes it; a value is refused as the option's would be.
void name_environment(CLI::App& app, std::string_view prefix = "TT_");

// The arguments behind the program's name, with llama.cpp's names of several
// letters behind one dash (-ngl, -ub...), which CLI11 does not have, as long ones.
std::vector<std::string> arguments_of(int argc, char** argv);

// Parses and runs callbacks; once for an `app`. Exit code when there is nothing
// more to do: 0 after --help and --version, 2 after a mistake; both have been
// printed. With TT_COMPLETE in the environment nothing runs: the words that the last
// argument, an option, takes are printed (cli/completion/tt).
std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments);

}  // namespace tt
