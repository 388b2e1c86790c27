// Expert usage as JSON: counts and measures of experts.h, expert_pinning.h and expert_cache.h in
// analysis/experts.
#pragma once

#include <vector>

#include "analysis/experts/expert_cache.h"
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
Json to_json(const ExpertCaches& caches);

}  // namespace tt
