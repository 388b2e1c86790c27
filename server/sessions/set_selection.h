// The sessions of a set that a client names (api/json/set_json.h).
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "api/json/set_json.h"
#include "server/sessions/session_store.h"

namespace tt {

// Their ids, sorted. Errors: an id of no session, no session passes the filter, or more than `max`
// do.
std::expected<std::vector<std::string>, Problem> select_set(SessionStore& sessions,
                                                            const SetSelector& set,
                                                            std::size_t max);

// Identifies the state of the session files (SessionStore::tag()). nullopt while one of them is
// being recorded.
std::optional<std::string> tag_of_set(SessionStore& sessions, const std::vector<std::string>& ids);

}  // namespace tt
