#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt report FILE`: writes a report about a session as HTML, Markdown or JSON. Runs
// while `app` parses; sets `exit_code` to 1 if a file cannot be read or written. Both must
// outlive the parsing.
CLI::App* add_report_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
