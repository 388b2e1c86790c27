#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt gguf MODEL`: lists tensors with their file offsets, or the compression of the
// weights; reads only the file headers. Runs while `app` parses; sets `exit_code` to 1 if
// the model cannot be read. Both must outlive the parsing.
CLI::App* add_gguf_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
