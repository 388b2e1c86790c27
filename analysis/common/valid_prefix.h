// Queries over a damaged session file: the result covers the steps before the damage.
#pragma once

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

template <class Found>
bool is_damaged(const Found& found) {
  return !found && found.error().kind == TraceError::Kind::Damaged;
}

// Returns the result of `query` for the session. If it fails because of a damaged row,
// limits the reader to the steps before the first damaged row and runs it again;
// reader.readable_steps() is then the number of these steps. Returns the first error if the
// second run fails, too.
template <class Query>
auto query_valid_prefix(SessionReader& reader, const Query& query,
                        const ContinueCheck& keep_going = never_cancel) {
  auto found = query(reader);
  if (!is_damaged(found)) return found;
  const auto end = reader.truncate_at_damage(keep_going);
  if (!end || !*end) return found;
  auto of_prefix = query(reader);
  if (!of_prefix) return found;
  return of_prefix;
}

}  // namespace tt
