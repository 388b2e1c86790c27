// Out by every way that leads back, and in again: the same session, but for its graph.
#pragma once

#include <string>
#include <vector>

#include "tracer/format/file/session_reader.h"

namespace tt::test {

// What has to come back of each access, as text for messages.
std::vector<std::string> accesses_in(const SessionReader& reader);

// A run folder has no ends of ops: an op lasts until the next that touches something.
enum class Ends : bool { Unknown, Known };
// What `after`, an import, has to have of `before`.
void expect_same_session(const SessionReader& before, const SessionReader& after, Ends ends);

// By the log and by the run folder.
void expect_round_trips(const SessionReader& reader);

}  // namespace tt::test
