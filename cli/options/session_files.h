// The session files of a verb that takes several.
#pragma once

#include <CLI/CLI.hpp>
#include <expected>
#include <string>
#include <vector>

#include "tracer/format/model/trace_error.h"

namespace tt::cli {

struct SessionFiles {
  // Sorted by name. The name is that of the file without .ttrace, or its path where two files have
  // the same name; valid UTF-8; no two are equal.
  std::vector<std::string> names, paths;
  bool set = false;  // false: one file that was named directly
};

// Adds a required positional argument: files, folders, patterns.
CLI::Option* add_session_files(CLI::App& command, std::vector<std::string>& arguments);

// Expands a folder to its *.ttrace files, and a pattern ('runs/*.ttrace') to the files that match.
// Errors: a folder without sessions, a pattern that matches nothing. The files are not opened.
std::expected<SessionFiles, TraceError> session_files(const std::vector<std::string>& arguments);

}  // namespace tt::cli
