// Moves files in the data folder, and maps system errors to TraceError.
#pragma once

#include <expected>
#include <filesystem>
#include <system_error>

#include "tracer/format/model/trace_error.h"

namespace tt {

// Renames a file within one file system. Fails with file_exists when `to` exists.
std::expected<void, std::error_code> move_file(const std::filesystem::path& from,
                                               const std::filesystem::path& to);

// The same for a session file and what SQLite keeps beside it (WAL, journal). Open connections stay
// valid: they have the files, not the names.
std::expected<void, std::error_code> move_session_file(const std::filesystem::path& from,
                                                       const std::filesystem::path& to);
// Needs no space on the disk.
std::expected<void, TraceError> remove_session_file(const std::filesystem::path& file);

// Returns NotFound, DiskFull, ReadOnly or Io, with a message that says what to do.
TraceError file_error(const std::filesystem::path& file, std::error_code error);

}  // namespace tt
