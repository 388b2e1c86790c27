// Moving files of the data folder, and what the system says when it will not.
#pragma once

#include <expected>
#include <filesystem>
#include <system_error>

#include "tracer/format/model/trace_error.h"

namespace tt {

// Within one file system, and never over a file that is there (file_exists).
std::expected<void, std::error_code> move_file(const std::filesystem::path& from,
                                               const std::filesystem::path& to);

// NotFound, DiskFull, ReadOnly or Io, in words that say what to do.
TraceError file_error(const std::filesystem::path& file, std::error_code error);

}  // namespace tt
