#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt hot FILE`: the most and least accessed tensors, layers, ops..., as a table or
// JSON. Runs while `app` parses; sets `exit_code` to 1 if the file cannot be read. Both must
// outlive the parsing.
CLI::App* add_hot_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
