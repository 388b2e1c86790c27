#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt sql FILE STATEMENT`: runs one SELECT on a session and prints a table, JSON or CSV.
// Runs while `app` parses; sets `exit_code` to 1 if the file cannot be read or the statement
// fails. Both must outlive the parsing.
CLI::App* add_sql_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
