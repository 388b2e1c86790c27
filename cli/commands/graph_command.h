#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt graph FILE`: prints the graph of a step, or some of its layers, as DOT or JSON.
// Runs while `app` parses; sets `exit_code` to 1 if the file cannot be read or the step or
// layer does not exist. Both must outlive the parsing.
CLI::App* add_graph_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
