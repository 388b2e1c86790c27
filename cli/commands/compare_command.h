#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt compare LEFT RIGHT`: two sessions side by side. Runs while `app` parses;
// `exit_code` is 1 when a file cannot be read. Both outlive the parsing.
CLI::App* add_compare_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
