#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt reuse FILE`: what memory would save of a session's reads of weights,
// as a table or as JSON. Runs while `app` parses; `exit_code` is 1 when the file
// cannot be read. Both outlive the parsing.
CLI::App* add_reuse_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
