// The two pictures of a run folder. Private to it.
#pragma once

#include <filesystem>

#include "api/exchange/session_rows.h"

namespace tt::exchange {

// heatmap_token_layer.png and timeline_offset.png, into `folder`, which is there.
// Of the steps of `rows`. In memory is an index of the session (session_index.h).
Written write_run_pictures(const SessionRows& rows, const std::filesystem::path& folder,
                           const KeepGoing& keep_going);

}  // namespace tt::exchange
