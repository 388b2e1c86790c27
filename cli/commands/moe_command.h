#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt moe FILE`: how a session used the experts of its model, and whether
// pinning them would help. A model without experts is told, and no failure. Runs
// while `app` parses; `exit_code` is 1 when the file cannot be read or has no
// such layer. Both outlive the parsing.
CLI::App* add_moe_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
