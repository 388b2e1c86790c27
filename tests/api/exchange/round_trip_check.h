// Exports a session in each importable format, imports it and compares everything.
#pragma once

#include <string>
#include <vector>

#include "tracer/format/file/session_reader.h"

namespace tt::test {

// The fields of each access that an import must restore, as text for messages.
std::vector<std::string> accesses_in(const SessionReader& reader);

// Checks that the import `after` equals `before`.
void expect_same_session(const SessionReader& before, const SessionReader& after);

// Checks the log and the run folder.
void expect_round_trips(const SessionReader& reader);

}  // namespace tt::test
