// Comparisons as JSON (Comparison and WithinComparison in openapi.yaml).
#pragma once

#include "analysis/report/comparison.h"
#include "api/json/json.h"

namespace tt {

Json to_json(const Comparison& comparison, const SessionInfo& left, const SessionInfo& right);
Json to_json(const WithinComparison& comparison);

}  // namespace tt
