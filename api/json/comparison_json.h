// Comparison of two sessions as JSON (Comparison in openapi.yaml).
#pragma once

#include "analysis/report/comparison.h"
#include "api/json/json.h"

namespace tt {

Json to_json(const Comparison& comparison, const SessionInfo& left, const SessionInfo& right);

}  // namespace tt
