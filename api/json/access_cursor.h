// The cursor of a list of accesses as clients have it: text to hand back with
// the question that it came from. What is in it is nobody's business but ours;
// a number says which session, filter and order it belongs to.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "analysis/accesses/access_table.h"
#include "api/json/problem.h"

namespace tt {

std::string cursor_text(const AccessPlace& place, const std::string& session,
                        const AccessQuery& query);

// BadRequest: it belongs to another question, or is no cursor.
std::expected<AccessPlace, Problem> parse_cursor(std::string_view text, const std::string& session,
                                                 const AccessQuery& query);

}  // namespace tt
