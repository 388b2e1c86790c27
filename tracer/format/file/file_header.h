// Checks by its first 100 bytes, without SQLite, whether a file is a session that this
// program can read. Private to tracer/format.
#pragma once

#include <expected>
#include <filesystem>

#include "tracer/format/model/trace_error.h"

namespace tt {

// Errors: NotFound, NotASession, NewerVersion, ReadOnly (no permission) or Io.
std::expected<void, TraceError> check_file_header(const std::filesystem::path& path);

}  // namespace tt
