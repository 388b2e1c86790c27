#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt export SESSION -o OUTPUT`: a session as a file that other tools read.
// Runs while `app` parses; `exit_code` is 1 when something cannot be read or
// written, 130 when it was interrupted; then no half file is left. Both outlive
// the parsing.
CLI::App* add_export_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
