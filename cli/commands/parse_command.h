#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt parse FILE`: a session's accesses as rows, counted, or whether it is sound. Runs
// while `app` parses; `exit_code` is 1 when the file cannot be read, or with
// --validate is not sound. Both outlive the parsing.
CLI::App* add_parse_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
