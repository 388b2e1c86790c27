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

// Returns NotFound, DiskFull, ReadOnly or Io, with a message that says what to do.
TraceError file_error(const std::filesystem::path& file, std::error_code error);

}  // namespace tt
