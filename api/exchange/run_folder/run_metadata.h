// Reads trace_metadata.json of a run folder incrementally, because its size grows with the
// session. Private to the import.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>

#include "api/exchange/rows/session_rows.h"
#include "api/json/json.h"

namespace tt::exchange {

// Maximum text size of a single step, and of everything outside of the steps.
inline constexpr std::size_t kMaxMetadataText = 16u << 20;

// The metadata without steps ("steps" is an empty list). Damaged if the file is not run folder
// metadata.
std::expected<Json, TraceError> metadata_in(const std::filesystem::path& path);

// Calls `step` for each step; stops at its first error.
WriteResult for_each_step_in(const std::filesystem::path& path,
                             const std::function<WriteResult(const Json&)>& step);

}  // namespace tt::exchange
