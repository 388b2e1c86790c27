// Findings and advice as JSON, with their words (api/text/finding_text.h) and their evidence.
#pragma once

#include <span>

#include "analysis/findings/finding.h"
#include "api/json/json.h"

namespace tt {

// `has_experts`: of the model.
Json findings_json(std::span<const Finding> findings, std::span<const Advice> advice,
                   bool has_experts);

}  // namespace tt
