// Opaque cursor text of a paged access list. Clients pass it back with the same query. It
// contains the position of the next access and a hash of the session, filter and order.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "analysis/accesses/access_table.h"
#include "api/json/problem.h"

namespace tt {

std::string encode_cursor(const AccessId& place, const std::string& session,
                          const AccessQuery& query);

// BadRequest if the text is not a cursor or belongs to another query.
std::expected<AccessId, Problem> parse_cursor(std::string_view text, const std::string& session,
                                              const AccessQuery& query);

}  // namespace tt
