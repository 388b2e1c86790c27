#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt model SHAPE -o FILE`: writes a generated model; `tt model --list`
// names shapes and quantizations. Runs while `app` parses; `exit_code` is 0 when
// the file was written, 1 when the model could not be made or written, 130 when
// interrupted (nothing is left behind then). Both outlive the parsing.
CLI::App* add_model_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
