#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt sql FILE STATEMENT`: one SELECT over a session, as a table, JSON or CSV.
// Runs while `app` parses; `exit_code` is 1 when the file cannot be read or the
// statement fails. Both outlive the parsing.
CLI::App* add_sql_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
