#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt record -p TEXT -o FILE.ttrace`: runs one request without a server and
// records it. The answer streams to stdout, progress and a summary to stderr.
// Runs while `app` parses; `exit_code` is 0 when the file was written, 1 when
// something failed, 130 when it was interrupted (the file is finished then, too).
// Both outlive the parsing.
CLI::App* add_record_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
