#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt moe FILE`: how a session used its model's experts, and whether pinning them would
// help. A model without experts is reported and is not an error. Runs while `app` parses;
// sets `exit_code` to 1 if the file cannot be read or the layer does not exist. Both must
// outlive the parsing.
CLI::App* add_moe_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
