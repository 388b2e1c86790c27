#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt graph FILE`: the graph that a step of a session evaluated, whole or
// some of its layers, as DOT or JSON. Runs while `app` parses; `exit_code` is 1
// when the file cannot be read or has no such step or layer. Both outlive the
// parsing.
CLI::App* add_graph_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
