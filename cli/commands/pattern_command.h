#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt pattern FILE`: whether a session's tokens touch the same bytes, and
// access_pattern.json. Runs while `app` parses; `exit_code` is 1 when a file
// cannot be read or written. Both outlive the parsing.
CLI::App* add_pattern_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
