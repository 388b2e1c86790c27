#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt import LOG_OR_FOLDER -o SESSION`: a session from an export of it. Runs
// while `app` parses; `exit_code` is 1 when something cannot be read or written, 130
// when it was interrupted. Both outlive the parsing.
CLI::App* add_import_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
