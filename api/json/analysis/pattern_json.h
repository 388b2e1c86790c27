// access_pattern.json: the order in which a token reads the weights, how often that order is
// the same, and what differs between tokens. See docs/access-pattern.md.
#pragma once

#include "analysis/weights/pattern.h"
#include "api/json/json.h"
#include "tracer/format/model/session.h"

namespace tt {

Json to_json(const Determinism& determinism);
Json to_json(const AccessPattern& pattern, const Determinism& determinism,
             const SessionInfo& session);

}  // namespace tt
