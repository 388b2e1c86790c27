// Reuse of weights as JSON: bytes and counts as in analysis/reuse.h, curves by
// capacity.
#pragma once

#include <vector>

#include "analysis/reuse.h"
#include "api/json.h"

namespace tt {

struct ReuseCurves {
  std::vector<CachePoint> lru, belady, pin;  // at the same capacities
};

// {"grain", "items", "reads", "bytes_read", "distinct_bytes", "first": {...},
//  "distances": [{"from_bytes", "to_bytes", "reads", "bytes"}...],
//  "curve": [{"capacity_bytes", "lru": {"reads_saved", "bytes_saved"}, "belady", "pin"}...]}
Json to_json(const ReadSequence& sequence, Grain grain, const ReuseHistogram& histogram,
             const ReuseCurves& curves);

}  // namespace tt
