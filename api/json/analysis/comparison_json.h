// Comparisons as JSON (Comparison, ComparedValues and WithinComparison in openapi.yaml).
#pragma once

#include "analysis/report/comparison.h"
#include "analysis/report/values_difference.h"
#include "api/json/json.h"

namespace tt {

Json to_json(const Comparison& comparison, const SessionInfo& left, const SessionInfo& right);
Json to_json(const WithinComparison& comparison);
// The outputs of the page. Errors that are not finite are null.
Json to_json(const ValuesComparison& comparison);
Json to_json(const ValuesPicture& picture);

}  // namespace tt
