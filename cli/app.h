// The command line of tt: all verbs of commands/verbs.h with their options.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

namespace tt::cli {

// Parsing the app (program/command_line.h) runs the given verb and sets `exit_code`, which must
// outlive the app.
std::unique_ptr<CLI::App> make_app(int& exit_code);

// Replaces "help" by "--help", and "help VERB" by "VERB --help".
std::vector<std::string> replace_help_verb(const CLI::App& app, std::vector<std::string> arguments);

}  // namespace tt::cli
