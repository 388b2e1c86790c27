// The result of validating a recording, as JSON:
// {"passed": bool, "checks": [{"check", "verdict", "items_checked", "wrong", "summary",
// "evidence"}]}.
#pragma once

#include "analysis/report/validation.h"
#include "api/json/json.h"

namespace tt {

Json to_json(const Validation& validation);

}  // namespace tt
