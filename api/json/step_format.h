// The list of steps as binary columns (api/step_format.md), which the web UI reads in place.
#pragma once

#include <string>

#include "analysis/common/page.h"
#include "analysis/tables/step_summary.h"

namespace tt {

std::string columns_of(const Page<StepSummary>& steps);

}  // namespace tt
