// Attention heads and KV cache use as JSON, from analysis/attention/heads.h and kv_use.h.
#pragma once

#include "analysis/attention/heads.h"
#include "analysis/attention/kv_use.h"
#include "api/json/json.h"

namespace tt {

// {"heads": n, "kv_heads": n, "weights": [...]}
Json to_json(const HeadTable& table);
// {"total": n, "steps": [...]}
Json to_json(const Page<KvStep>& steps);

}  // namespace tt
