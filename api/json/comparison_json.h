// Two sessions side by side, as JSON of openapi.yaml's Comparison.
#pragma once

#include "analysis/report/comparison.h"
#include "api/json/json.h"

namespace tt {

Json to_json(const Comparison& comparison, const SessionInfo& left, const SessionInfo& right);

}  // namespace tt
