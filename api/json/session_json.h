// Sessions as JSON of api/openapi.yaml, and the PATCH body.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/common/page.h"
#include "analysis/tables/session_overview.h"
#include "api/json/json.h"
#include "api/json/problem.h"

namespace tt {

// A session file: its overview, or why it cannot be read.
// Of the list of sessions; those of SessionState, and of a file that is not a session.
inline constexpr std::array<std::string_view, 6> kSessionStates = {
    "running", "done", "cancelled", "failed", "recovered", "unreadable"};

struct SessionEntry {
  std::string id;
  std::uint64_t file_bytes = 0;
  std::optional<SessionOverview> overview;
  std::string error;  // set if there is no overview: what is wrong and what to do
};
using SessionEntryPtr = std::shared_ptr<const SessionEntry>;

Json to_json(const LossCounters& losses);
Json to_json(const SessionEntry& session);
// {"total": n, "sessions": [...]}
Json to_json(const Page<SessionEntryPtr>& sessions);

// The body of a PATCH: {"title": "..."}, 1 to 200 characters.
std::expected<std::string, Problem> parse_title_body(const std::string& body);

}  // namespace tt
