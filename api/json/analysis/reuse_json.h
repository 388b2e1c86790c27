// Weight reuse as JSON: bytes and counts of analysis/weights/reuse.h, and hit curves by cache
// capacity.
#pragma once

#include "analysis/weights/reuse.h"
#include "api/json/json.h"

namespace tt {

// {"grain", "items", "reads", "bytes_read", "distinct_bytes", "first": {...},
//  "distances": [{"from_bytes", "to_bytes", "reads", "bytes"}...],
//  "curve": [{"capacity_bytes", "lru": {"reads_saved", "bytes_saved"}, "belady", "pin"}...]}
Json to_json(const Reuse& reuse);

}  // namespace tt
