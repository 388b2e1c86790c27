#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt report FILE`: a session told to people, as HTML, Markdown or JSON. Runs
// while `app` parses; `exit_code` is 1 when a file cannot be read or written. Both
// outlive the parsing.
CLI::App* add_report_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
