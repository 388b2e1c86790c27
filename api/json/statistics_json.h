// A session's accesses counted, as `tt parse --stats --json` prints them and a run folder's
// statistics.json has them (docs/exports.md).
#pragma once

#include <cstddef>

#include "analysis/aggregate/session_statistics.h"
#include "api/json/json.h"

namespace tt {

// Of the weights those with most bytes.
Json to_json(const SessionStatistics& statistics, std::size_t most_weights);

}  // namespace tt
