#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt heads FILE`: the weight bytes of each attention head, or with --kv the KV cache
// reads of each step. Runs while `app` parses; sets `exit_code` to 1 if the file cannot be
// read. Both must outlive the parsing.
CLI::App* add_heads_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
