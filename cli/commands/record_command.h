#pragma once

#include <CLI/CLI.hpp>

namespace tt::cli {

// Adds `tt record -p TEXT -o FILE.ttrace`: runs one request without a server and records it.
// Streams the answer to stdout; writes progress and a summary to stderr. Runs while `app`
// parses. Sets `exit_code` to 0 if the file was written, 1 on failure, 130 if interrupted (the
// file is complete then, too). Both must outlive the parsing.
CLI::App* add_record_command(CLI::App& app, int& exit_code);

}  // namespace tt::cli
