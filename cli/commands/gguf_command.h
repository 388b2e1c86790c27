#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt gguf MODEL`: which tensor lies where in a model's files, or how small
// its weights are; reads the headers only. Runs while `app` parses; `exit_code`
// is 1 when the model cannot be read. Both outlive the parsing.
CLI::App* add_gguf_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
