// Access statistics of a session, for `tt parse --stats --json` and statistics.json of a run
// folder (docs/exports.md).
#pragma once

#include <cstddef>

#include "analysis/aggregate/session_statistics.h"
#include "api/json/json.h"

namespace tt {

// Includes the `max_weights` weights with the most bytes.
Json to_json(const SessionStatistics& statistics, std::size_t max_weights);

}  // namespace tt
