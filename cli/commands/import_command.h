#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt import LOG_OR_FOLDER -o SESSION`: creates a session from an export. Runs while
// `app` parses; sets `exit_code` to 1 if something cannot be read or written, 130 if
// interrupted. Both must outlive the parsing.
CLI::App* add_import_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
