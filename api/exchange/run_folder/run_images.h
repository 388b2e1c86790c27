// The two images of a run folder. Private to the export.
#pragma once

#include <filesystem>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/index/session_index.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

// Writes heatmap_token_layer.png and timeline_offset.png to the existing `folder`, for
// `steps`, which must be in the index.
WriteResult write_run_images(const SessionIndex& index, Range<std::uint64_t> steps,
                             const std::filesystem::path& folder, const ContinueCheck& keep_going);

}  // namespace tt::exchange
