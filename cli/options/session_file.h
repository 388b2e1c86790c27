// The session that a command reads: how it is named, and opened.
#pragma once

#include <CLI/CLI.hpp>
#include <expected>
#include <string>

#include "tracer/format/file/session_reader.h"

namespace tt::cli {

// A required positional argument.
CLI::Option* add_session_file(CLI::App* command, std::string& file,
                              const std::string& name = "file",
                              const std::string& description = "A session, .ttrace");

// Recovers a session whose recorder was killed, which stderr says. Any other is not
// touched: one that has ended, is still recorded, or lies where nothing can be written.
void recover_if_left(const std::string& file);

// After that.
std::expected<SessionReader, TraceError> open_session(const std::string& file);

}  // namespace tt::cli
