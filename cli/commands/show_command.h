#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt show FILE`: what a session says about itself. Runs while `app` parses;
// `exit_code` is 1 when the file cannot be read. Both outlive the parsing.
CLI::App* add_show_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
