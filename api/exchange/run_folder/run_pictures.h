// The two pictures of a run folder. Private to it.
#pragma once

#include <filesystem>

#include "analysis/aggregate/trace_axis.h"
#include "analysis/index/session_index.h"
#include "api/exchange/rows/session_rows.h"

namespace tt::exchange {

// heatmap_token_layer.png and timeline_offset.png, into `folder`, which is there. Of
// `steps`, which the index has.
Written write_run_pictures(const SessionIndex& index, Stretch<std::uint64_t> steps,
                           const std::filesystem::path& folder, const KeepGoing& keep_going);

}  // namespace tt::exchange
