// Attention heads and KV caches as JSON: as in analysis/heads.h and kv_use.h.
#pragma once

#include "analysis/heads.h"
#include "analysis/kv_use.h"
#include "api/json.h"

namespace tt {

// {"heads": n, "kv_heads": n, "weights": [...]}
Json to_json(const HeadTable& table);
// {"total": n, "steps": [...]}
Json to_json(const Page<KvStep>& steps);

}  // namespace tt
