#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt model SHAPE -o FILE`: writes a generated model; `tt model --list`
// names shapes and quantizations. Runs while `app` parses; `exit_code` is 0 when
// the file was written, 1 when it could not be written, 2 when there is no such
// shape or quantization, or no such model; 130 when interrupted (nothing is left
// behind then). Both outlive the parsing.
CLI::App* add_model_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
