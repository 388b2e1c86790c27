// Out by every way that leads back, and in again: the same session, but for its graph.
#pragma once

#include <string>
#include <vector>

#include "tracer/format/session_reader.h"

namespace tt::testing {

// What has to come back of each access, as text for messages.
std::vector<std::string> accesses_in(const SessionReader& reader);

// By the log and by the run folder.
void expect_round_trips(const SessionReader& reader);

}  // namespace tt::testing
