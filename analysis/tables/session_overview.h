// A session as one row of the session list.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "tracer/format/file/session_reader.h"

namespace tt {

struct SessionOverview {
  SessionInfo info;
  LossCounters losses;
  std::uint32_t steps = 0, tokens = 0;
  friend bool operator==(const SessionOverview&, const SessionOverview&) = default;
};

std::expected<SessionOverview, TraceError> session_overview(const SessionReader& reader);

// What the memory budget did at the end of the session: "active: 200 MiB stay in memory, ...".
// Empty: there was none.
std::string memory_budget_text(const SessionInfo& info);

}  // namespace tt
