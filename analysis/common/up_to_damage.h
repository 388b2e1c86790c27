// Questions of a session whose file is damaged: what is whole is answered, and where it
// ends is told.
#pragma once

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

template <class Found>
bool is_damaged(const Found& found) {
  return !found && found.error().kind == TraceError::Kind::Damaged;
}

// What `question` says of the session; where a damaged row is in its way, what it says of
// the steps before the first such row, whose number reader.whole_steps() then is. The first
// error where that does not help either.
template <class Question>
auto ask_up_to_damage(SessionReader& reader, const Question& question,
                      const KeepGoing& keep_going = always) {
  auto found = question(reader);
  if (!is_damaged(found)) return found;
  const auto end = reader.end_at_damage(keep_going);
  if (!end || !*end) return found;
  auto of_whole = question(reader);
  if (!of_whole) return found;
  return of_whole;
}

}  // namespace tt
