// Filters and sorts the session list: a pure function over its rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "api/json/session_json.h"

namespace tt {

enum class SessionKey : std::uint8_t { Start, Title, Model, Steps, Tokens, FileBytes };

struct SessionQuery {
  std::string words{};  // words that title, model or id must contain, case-insensitive
  std::string state{};  // name in the API; empty: any
  std::string model{};  // file name of the model; empty: any
  SessionKey key = SessionKey::Start;
  bool descending = true;
  PageRange page{};
};

// What the list is filtered and sorted by. Kept for every session, so it must stay small: the facts
// of a session are in its SessionEntry.
struct SessionRow {
  static constexpr std::size_t kMaxText = 1024;  // bytes of title and model

  std::string id;
  std::string title, model;  // model: file name of the first model file
  std::string state;         // name in the API, including "unreadable"
  std::int64_t start_utc_ns = 0;
  std::uint64_t file_bytes = 0;
  std::uint32_t steps = 0, tokens = 0;

  bool readable() const { return state != "unreadable"; }
  bool running() const { return state == "running"; }
};
using SessionRowPtr = std::shared_ptr<const SessionRow>;

SessionRow row_of(const SessionEntry& session);

// Ties are ordered by id. Bytes that are not valid UTF-8 match only themselves.
Page<SessionRowPtr> select_sessions(std::vector<SessionRowPtr> sessions, const SessionQuery& query);

}  // namespace tt
