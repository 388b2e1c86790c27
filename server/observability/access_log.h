// One line in the log per answered HTTP request: debug for what only reads, info
// for what changes something, a warning where the fault is the server's.
#pragma once

#include <string>

#include "server/door/answered.h"
#include "server/observability/log.h"

namespace tt {

void log_answer(const Log& log, const Answered& answered);

// The route as a label of /metrics: "/api/v1/sessions/{id}", "page", or "none".
// As many as there are routes.
std::string route_label(const Answered& answered);

}  // namespace tt
