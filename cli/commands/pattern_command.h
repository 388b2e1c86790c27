#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt pattern FILE`: whether each token accesses the same bytes; writes
// access_pattern.json. Runs while `app` parses; sets `exit_code` to 1 if a file cannot be
// read or written. Both must outlive the parsing.
CLI::App* add_pattern_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
