#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt heads FILE`: the bytes that attention heads own in their weights, and
// with --kv what each step read of the KV cache. Runs while `app` parses;
// `exit_code` is 1 when the file cannot be read. Both outlive the parsing.
CLI::App* add_heads_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
