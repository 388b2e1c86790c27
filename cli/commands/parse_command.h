#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt parse FILE`: lists accesses as rows, summarizes them, or validates the recording.
// Runs while `app` parses; sets `exit_code` to 1 if the file cannot be read or --validate
// fails. Both must outlive the parsing.
CLI::App* add_parse_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
