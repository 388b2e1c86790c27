// The session file argument of a command, and opening it.
#pragma once

#include <CLI/CLI.hpp>
#include <expected>
#include <filesystem>
#include <string>

#include "tracer/format/file/session_reader.h"

namespace tt::cli {

// Adds a required positional argument.
CLI::Option* add_session_file(CLI::App& command, std::string& file,
                              const std::string& name = "file",
                              const std::string& description = "Session file (.ttrace)");

// Recovers a session whose recorder was killed and reports it on stderr. Does not modify
// sessions that have ended, that are still being recorded, or that are not writable.
void recover_if_unfinished(const std::string& file);

// The error for a file that does not exist, with the files of its folder that have a similar name.
TraceError not_found(const std::filesystem::path& file);

// Calls recover_if_unfinished() and opens the session. The error for a run folder, a log or a model
// names the verb for it.
std::expected<SessionReader, TraceError> open_session(const std::string& file);

}  // namespace tt::cli
