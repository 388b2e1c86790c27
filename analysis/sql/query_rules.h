// What a statement of someone who is not trusted may do: SELECT over the session's
// tables and views with functions that only compute.
#pragma once

#include <optional>
#include <string>

namespace tt::sql {

// As sqlite3_set_authorizer() asks. None: it may; else why not, in words for people.
std::optional<std::string> why_refused(int action, const char* first, const char* second);

}  // namespace tt::sql
