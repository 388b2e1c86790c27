// Checks of an access query for people: a name or number that the session does not have is an
// error with the nearest names, instead of an empty result.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "analysis/accesses/access_table.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// NotFound: the query names a tensor, op, layer, expert or step that the session does not have.
// A session without graphs is not checked: it has no accesses at all.
std::expected<void, TraceError> check_access_query(const SessionReader& reader,
                                                   const AccessQuery& query);

// The filters of the query as text, for a query without rows: "tensor attn_q", "phase prompt".
std::vector<std::string> filter_texts(const AccessQuery& query);

}  // namespace tt
