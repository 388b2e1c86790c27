#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt model SHAPE -o FILE`: writes a generated model; `tt model --list` lists shapes
// and quantizations. Runs while `app` parses. Sets `exit_code` to 0 on success, 1 if the
// file cannot be written, 2 for an unknown shape or quantization or an invalid combination,
// 130 if interrupted (written files are removed). Both must outlive the parsing.
CLI::App* add_model_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
