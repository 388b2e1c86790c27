// Expert usage as JSON: counts and measures of analysis/experts/experts.h and
// analysis/experts/expert_pinning.h.
#pragma once

#include <vector>

#include "analysis/experts/expert_pinning.h"
#include "analysis/experts/experts.h"
#include "api/json/json.h"

namespace tt {

// {"routers": [...]}; an empty list if the model has no experts.
Json to_json(const std::vector<RouterUse>& routers);
// The fields of the router, "pairs", and "tokens" in each of "used".
Json to_json(const RouterDetail& detail);
Json to_json(const Page<TokenExperts>& tokens);  // {"total": n, "tokens": [...]}
Json to_json(const ExpertPinning& pinning);

}  // namespace tt
