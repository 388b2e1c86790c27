// Two sessions side by side, as JSON of openapi.yaml's Comparison.
#pragma once

#include "analysis/comparison.h"
#include "api/json.h"

namespace tt {

Json to_json(const Comparison& comparison, const SessionInfo& left, const SessionInfo& right);

}  // namespace tt
