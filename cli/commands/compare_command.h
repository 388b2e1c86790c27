#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt compare LEFT RIGHT`: compares two sessions. Runs while `app` parses; sets
// `exit_code` to 1 if a file cannot be read. Both must outlive the parsing.
CLI::App* add_compare_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
