#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt show FILE`: prints a session's metadata, times, graphs and answer. Runs while
// `app` parses; sets `exit_code` to 1 if the file cannot be read. Both must outlive the parsing.
CLI::App* add_show_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
