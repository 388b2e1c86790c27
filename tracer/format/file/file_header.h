// Whether a file calls itself a session that this program can read: the first
// 100 bytes, without SQLite. Private to tracer/format.
#pragma once

#include <expected>
#include <filesystem>

#include "tracer/format/model/trace_error.h"

namespace tt {

// NotFound, NotASession, NewerVersion, ReadOnly (no permission) or Io.
std::expected<void, TraceError> check_file_header(const std::filesystem::path& path);

}  // namespace tt
