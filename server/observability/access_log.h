// Writes one log line per HTTP request: debug for requests that only read, info for requests
// that change state, warning for server errors.
#pragma once

#include <string>

#include "server/frontend/request_record.h"
#include "server/observability/log.h"

namespace tt {

void log_access(const Log& log, const RequestRecord& record);

// The route as a label value in /metrics: "/api/v1/sessions/{id}", "page" or "none". The
// number of distinct labels is bounded by the number of routes.
std::string route_label(const RequestRecord& record);

}  // namespace tt
