#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt export SESSION -o OUTPUT`: writes a session in a format of other tools. Runs
// while `app` parses; sets `exit_code` to 1 if something cannot be read or written, 130 if
// interrupted. An incomplete output file is removed. Both must outlive the parsing.
CLI::App* add_export_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
