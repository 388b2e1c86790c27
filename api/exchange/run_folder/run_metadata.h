// trace_metadata.json of a run folder, which grows with its session: never held whole. Private
// to the import.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>

#include "api/exchange/rows/session_rows.h"
#include "api/json/json.h"

namespace tt::exchange {

// Of the file's text: all that is beside the steps, and of each step alone.
inline constexpr std::size_t kMostMetadataText = 16u << 20;

// What stands beside the steps, with "steps" an empty list. Damaged when it is no such file.
std::expected<Json, TraceError> metadata_in(const std::filesystem::path& path);

// One step after the other; the first error of `step` ends it.
Written for_each_step_in(const std::filesystem::path& path,
                         const std::function<Written(const Json&)>& step);

}  // namespace tt::exchange
