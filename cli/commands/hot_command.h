#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt hot FILE`: what is touched most and least, by tensor, layer, op..., as a
// table or as JSON. Runs while `app` parses; `exit_code` is 1 when the file cannot be
// read. Both outlive the parsing.
CLI::App* add_hot_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
